"""`tpuenv` itself: help, exit codes, and what a person sees when something is wrong."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tpuenv.main import _COMMANDS, main
from vocabulary.sources import CHARTS

ROOT = Path(__file__).parent.parent.parent


def test_help_names_every_command_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for command in _COMMANDS:
        assert re.search(rf"^  {command}\s", shown, re.MULTILINE)
    assert "examples:\n    tpuenv rehearse" in shown


@pytest.mark.parametrize("command", ["", *_COMMANDS, "state versions", "state restore"])
def test_every_command_has_help_within_80_columns(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: {f'tpuenv {command}'.strip()} ")
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_help_loads_none_of_the_heavy_libraries() -> None:
    program = """
import sys
from tpuenv.main import main
main(["--help"])
print([name for name in ("cdktf", "jsii", "grpc", "requests", "google.cloud", "google.auth") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bootsrap"]) == 2
    assert "No such command 'bootsrap'. Did you mean 'bootstrap'?" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["rehearse", "bootstrap", "deploy", "destroy"])
def test_wrong_settings_are_printed_all_at_once_one_a_line(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for key, value in {"PROJECT_ID": "my-project", "TPU_TYPE": "v6e-17", "NUM_TPU_POOLS": "-1"}.items():
        monkeypatch.setenv(key, value)
    assert main([command]) == 2
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == ["TPU_TYPE", "NUM_TPU_POOLS"]


@pytest.mark.slow
def test_an_interrupt_is_one_line_and_130(tmp_path: Path) -> None:
    key = tmp_path / "ada.json"
    key.write_text('{"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}')
    with socket.create_server(("127.0.0.1", 0)) as silent:
        proxy = f"http://127.0.0.1:{silent.getsockname()[1]}"
        variables = {"PROJECT_ID": "some-project", "GOOGLE_APPLICATION_CREDENTIALS": str(key), "HTTPS_PROXY": proxy}
        with subprocess.Popen(
            [sys.executable, "-m", "tpuenv", "bootstrap"], cwd=ROOT, env=os.environ | variables | {"NO_PROXY": ""},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as running:  # fmt: skip
            try:
                # Open and without an answer until the end: on one that is closed, it tries again and says so.
                with silent.accept()[0]:
                    running.send_signal(signal.SIGINT)
                    _, err = running.communicate()
            finally:
                running.kill()
    assert running.returncode == 130
    assert err == "interrupted\n"


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    """As `tpuenv check FILE | head` does."""
    manifest = tmp_path / "job.yaml"
    manifest.write_text(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: a}]}}}\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "tpuenv", "check", str(manifest)],
            cwd=ROOT,
            env={**os.environ, "PROJECT_ID": "my-project"},
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (1, "")


def test_a_full_device_is_one_line_and_no_traceback() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tpuenv", "--help"], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (1, "standard output: No space left on device\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "--record", "--expect-no-changes"],
        ["destroy", "--confirm", "--foundation", "destroy"],
        ["rehearse", "--folder", "--keep"],
    ],
    ids=" ".join,
)
def test_an_option_does_not_take_the_next_one_for_its_value(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "requires an argument." in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "--record", ""],
        ["plan", "--record="],
        ["apply", "--reviewed", "", "queues"],
        ["state", "versions", ""],
        ["render", "--keys", ""],
    ],
    ids=" ".join,
)
def test_an_empty_value_is_refused_by_its_name_and_not_left_out(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    name = {"render": "RECIPE", "state": "STACK"}.get(arguments[0], arguments[1].removesuffix("="))
    assert f"Error: '{name}' is empty; give it a value, or leave it out" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--wait", "--lock-timeout"])
@pytest.mark.parametrize("time", ["٣m", "10", "m", "-1s", "1\n"])
def test_a_time_that_terraform_cannot_read_is_refused(
    option: str, time: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["apply", f"{option}={time}"]) == 2
    assert "is not a time; write 90s, 10m or 1h" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_the_script_that_completes(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_TPUENV_COMPLETE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("tpuenv reh", {"rehearse", "rehearse-pipeline"}),
        ("tpuenv plan --exp", {"--expect-no-changes"}),
        ("tpuenv state ", {"versions", "restore"}),
    ],
)
def test_commands_and_options_are_completed(
    words: str, completions: set[str], monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    variables = {"_TPUENV_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main([]) == 0
    assert {line.partition(",")[2] for line in capfdbinary.readouterr().out.decode().split()} == completions


def test_without_a_command_it_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    shown = capsys.readouterr().err
    assert "rehearse-pipeline" in shown
    assert "fleet.yaml" in shown


@pytest.mark.parametrize("command", [*sorted({*_COMMANDS} - {"state"}), "state versions", "state restore", ""])
def test_a_wrong_option_shows_the_usage_of_its_own_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    needed = {
        "check": ["job.yaml"],
        "apply": ["--reviewed", "a"],
        "state restore": ["queues", "1"],
        "completion": ["zsh"],
    }
    assert main([*command.split(), *needed.get(command, []), "--no-such-option"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"Usage: {f'tpuenv {command}'.strip()} [OPTIONS]")
    assert "Error: No such option '--no-such-option'" in shown.err


def test_the_version_is_printed_with_those_of_what_it_works_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    versions = dict(line.rsplit(" ", 1) for line in capsys.readouterr().out.splitlines())
    assert f'version = "{versions["tpuenv"]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pins = (ROOT / "requirements.in").read_text(encoding="utf-8")
    assert f"cdktf=={versions['cdktf']}\n" in pins
    assert f"cdktf-cdktf-provider-google=={versions['google bindings']}\n" in pins
    assert (versions["Kueue"], versions["JobSet"]) == (CHARTS["kueue"].version, CHARTS["jobset"].version)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", versions["Terraform"])
    assert versions["Python"] == sys.version.split()[0]


def test_the_version_is_printed_without_a_terraform(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERRAFORM_BINARY_NAME", "no-such-terraform")
    assert main(["--version"]) == 0
    assert "Terraform not found: make setup\n" in capsys.readouterr().out
