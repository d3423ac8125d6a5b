"""`tpuenv deploy` and `destroy`: what they hand to cdktf, what they show of it, and what they add."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bucket_ground import ground_in, state
from tpuenv.main import main
from tpuenv.terraform.cdktf import failed_stacks

ROOT = Path(__file__).parent.parent.parent
SYNTHESIZES = pytest.mark.slow  # the stacks, in a process of its own

REFUSAL = """\
Error: Instance cannot be destroyed
Resource terraform_data.guard (guard) has lifecycle.prevent_destroy set, but the plan
calls for this resource to be destroyed."""


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a person with a login has a Python, with the cdktf that the test puts beside it, and no synthesis yet."""
    monkeypatch.setenv("PROJECT_ID", "some-project")
    monkeypatch.setenv("GOOGLE_CREDENTIALS", "{}")
    monkeypatch.setattr("tpuenv.terraform.cdktf.OUTPUT", tmp_path)
    return str(tmp_path / "python")


def write_cdktf(python: str, *lines: str) -> None:
    program = Path(python).with_name("cdktf")
    program.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    program.chmod(0o755)


def as_program(python: str, *arguments: str) -> list[str]:
    program = (
        f"import sys; sys.executable = {python!r}; from tpuenv import main; sys.exit(main.main({list(arguments)!r}))"
    )
    return [sys.executable, "-c", program]


def read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux's way to say that the other end is closed
        return b""


@pytest.mark.parametrize(
    ("arguments", "handed_over"),
    [
        (["deploy", "--auto-approve"], "deploy * --auto-approve"),
        (["deploy", "foundation", "cluster", "--auto-approve"], "deploy foundation cluster --auto-approve"),
        (
            ["deploy", "--auto-approve", "queues", "--", "--ignore-missing-stack-dependencies"],
            "deploy queues --ignore-missing-stack-dependencies --auto-approve",
        ),
        (
            ["deploy", "queues", "--auto-approve", "--", "--ignore-missing-stack-dependencies"],
            "deploy queues --ignore-missing-stack-dependencies --auto-approve",
        ),
        (["deploy", "--auto-approve", "--", "--parallelism=1"], "deploy * --parallelism=1 --auto-approve"),
        (["deploy", "--auto-approve", "--", "--a", "--", "b"], "deploy * --a -- b --auto-approve"),
    ],
)
def test_cdktf_gets_the_stacks_or_all_of_them(
    python: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    arguments: list[str], handed_over: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "executable", python)
    write_cdktf(python, 'echo "$*"', "pwd", "command -v cdktf")
    assert main(arguments) == 0
    assert capfd.readouterr().out.splitlines() == [handed_over, str(ROOT), str(Path(python).with_name("cdktf"))]


def test_a_failure_keeps_its_output_and_exit_code_and_is_explained(
    python: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    write_cdktf(python, f"cat >&2 <<'END'\n{REFUSAL}\nEND", "exit 7")
    assert main(["deploy", "--auto-approve"]) == 7
    shown = capfd.readouterr()
    assert shown.out.strip() == REFUSAL
    assert "DELETION_PROTECTION=false tpuenv destroy" in shown.err


@pytest.mark.parametrize(
    ("output", "stacks"),
    [
        ("foundation  Error: no\n", ["foundation"]),
        ("\x1b[1mfoundation\x1b[0m  \x1b[31m╷\n            │ Error: no\x1b[0m\n", ["foundation"]),
        ("foundation  Creating...\n            ╷\n            │ Error: no\ncluster     Creating...\n", ["foundation"]),
        ("foundation  Done\nqueues  Error: no\nqueues  Error: again\n", ["queues"]),
        ("foundation  Error: no\ncluster  ╷\n         │ Error: no\n", ["foundation", "cluster"]),
        ("module  Error: no\n", []),
        ("foundation  Creating...\n", []),
    ],
)
def test_the_stacks_that_failed_are_known_however_cdktf_breaks_its_lines(output: str, stacks: list[str]) -> None:
    assert failed_stacks(output, ("foundation", "cluster", "queues")) == stacks


def test_an_unknown_failure_is_left_as_it_is(
    python: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    write_cdktf(python, "echo 'Error: something new'", "exit 1")
    assert main(["deploy", "--auto-approve"]) == 1
    assert capfd.readouterr().err == ""


def test_an_error_at_the_end_of_a_long_output_is_explained(
    python: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    write_cdktf(python, "head -c 5000000 /dev/zero | tr '\\0' 'x'", f"cat <<'END'\n\n{REFUSAL}\nEND", "exit 1")
    assert main(["deploy", "--auto-approve"]) == 1
    shown = capfd.readouterr()
    assert len(shown.out) > 5_000_000
    assert "DELETION_PROTECTION=false" in shown.err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["{queues,nosuch}"], "'{queues,nosuch}': name stacks, or use * and ?"),
        (["!(x)"], "'!(x)': name stacks, or use * and ?"),
        (["que\\ues"], "name stacks, or use * and ?"),
        pytest.param(
            ["quees"],
            "'quees': there is no such stack; did you mean queues? There are foundation, cluster, platform, "
            "tpu-node-pools, queues, observability",
            marks=SYNTHESIZES,
        ),
        pytest.param(["queues", "nosuch"], "'nosuch': there is no such stack; there are", marks=SYNTHESIZES),
        pytest.param(
            ["--", "queues"],
            "'queues': name it before the --, else all the others would be destroyed with it",
            marks=SYNTHESIZES,
        ),
        (["queues", "--", "*"], "'*': name it before the --"),
        (["queues", "--", "{platform,x}"], "'{platform,x}': name it before the --"),
        (["queues", "--", "--skip-provider-lock", "{platform,x}"], "'{platform,x}': name it before the --"),
        (["queues", "--", "--no-color", "--", "{platform,x}"], "'{platform,x}': name it before the --"),
        (["queues", "--", "--stacks", "{platform,x}"], "'{platform,x}': name it before the --"),
        (["queues", "--", "!x"], "'!x': name it before the --"),
        (["--", "--output"], "--output: names no folder"),
    ],
)
def test_destroy_refuses_arguments_that_it_cannot_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    arguments: list[str], error: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("GOOGLE_CREDENTIALS", "{}")
    monkeypatch.setenv("PROJECT_ID", "some-project")
    further = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    stacks = arguments[: arguments.index("--")] if "--" in arguments else arguments
    assert main(["destroy", "--auto-approve", *stacks, "--", "--output", str(tmp_path), *further]) == 2
    assert error in capsys.readouterr().err


def _synthesized(folder: Path) -> None:
    stacks = {name: {"workingDirectory": f"stacks/{name}", "dependencies": []} for name in ("foundation", "queues")}
    (folder / "manifest.json").write_text(json.dumps({"stacks": stacks}))


@SYNTHESIZES
def test_deploy_refuses_a_name_that_no_stack_has_before_cdktf_runs(
    python: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_cdktf(python, "echo started")
    _synthesized(tmp_path)
    assert main(["deploy", "queues", "quees", "--auto-approve", "--", "--output", str(tmp_path)]) == 2
    shown = capfd.readouterr()
    assert shown.err.startswith("'quees': there is no such stack; did you mean queues? There are foundation, cluster")
    assert shown.out == ""


def test_of_a_first_deploy_a_name_that_cdktf_refused_is_reported_as_wrong(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    _synthesized(tmp_path)
    manifest = (tmp_path / "manifest.json").rename(tmp_path / "later.json")
    write_cdktf(python, f"mv {manifest} {tmp_path}/manifest.json", "exit 1")
    assert main(["deploy", "quees", "--auto-approve", "--", "--output", str(tmp_path)]) == 2
    assert capfd.readouterr().err.startswith("'quees': there is no such stack; did you mean queues?")


@pytest.mark.parametrize("pattern", ["que*", "{queues,foundation}", "!(queues)"])
def test_deploy_takes_the_patterns_of_cdktf(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], pattern: str
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    write_cdktf(python, 'echo "$2"', "exit 1")
    _synthesized(tmp_path)
    assert main(["deploy", pattern, "--auto-approve", "--", "--output", str(tmp_path)]) == 1
    assert capfd.readouterr().out == f"{pattern}\n"


def test_deploy_names_a_stack_that_the_settings_no_longer_have(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with ground_in(tmp_path, monkeypatch) as ground:
        ground.write("observability/default.tfstate", state(1, "x"))
        monkeypatch.setattr(sys, "executable", python)
        write_cdktf(python, "echo deployed")
        _synthesized(tmp_path)
        assert main(["deploy", "--auto-approve", "--", "--output", str(tmp_path)]) == 0
    shown = capfd.readouterr()
    assert shown.out == "deployed\n"
    assert shown.err.strip().startswith("observability: the settings have no such stack any more, and 1 resource of it")


@pytest.mark.parametrize("command", ["bootstrap", "deploy", "destroy"])
def test_the_examples_project_is_not_taken_for_somebodys(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.setenv("PROJECT_ID", "my-project")
    monkeypatch.delenv("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", raising=False)
    assert main([command]) == 2
    assert capsys.readouterr().err.startswith("PROJECT_ID: 'my-project' is the example's; set it in vars.env")


def test_the_project_of_the_example_is_accepted_for_a_fake_cloud(
    python: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROJECT_ID", "my-project")
    monkeypatch.setenv("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "http://127.0.0.1:9/storage/v1/")
    monkeypatch.setattr(sys, "executable", python)
    write_cdktf(python, "echo started")
    assert main(["deploy", "--auto-approve"]) == 0
    assert capfd.readouterr().out == "started\n"


def test_without_a_terminal_it_needs_the_approval_beforehand(python: str) -> None:
    write_cdktf(python, "echo started")
    done = subprocess.run(
        as_program(python, "deploy"), cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("deploy: there is no terminal to ask at; add --auto-approve")
    assert done.stdout == ""


def test_a_missing_cdktf_says_what_installs_it(
    python: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setenv("PATH", os.path.dirname(python))
    assert main(["deploy", "--auto-approve"]) == 1
    assert "`make setup` installs it" in capsys.readouterr().err


def test_cdktf_can_ask_at_a_terminal_and_is_explained_there_too(python: str) -> None:
    write_cdktf(
        python,
        "test -t 0 && test -t 1 || exit 9",
        "printf 'Approve? '; read answer; echo \"got $answer\"",
        f"cat <<'END'\n{REFUSAL}\nEND",
        "exit 3",
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        as_program(python, "deploy"), cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as running:
        os.close(theirs)
        shown, answered = b"", False
        while chunk := read_terminal(ours):
            shown += chunk
            if b"Approve? " in shown and not answered:
                os.write(ours, b"yes\n")
                answered = True
    os.close(ours)
    assert running.returncode == 3
    assert b"got yes" in shown
    assert b"DELETION_PROTECTION=false tpuenv destroy" in shown


@pytest.mark.parametrize("synthesized", [False, True])
def test_at_a_terminal_the_first_deploy_points_to_preflight(python: str, tmp_path: Path, synthesized: bool) -> None:
    write_cdktf(python, "echo started")
    if synthesized:
        (tmp_path / "manifest.json").write_text('{"stacks": {}}')
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        as_program(python, "deploy", "--auto-approve", "--", "--output", str(tmp_path)), cwd=ROOT,
        stdin=theirs, stdout=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        out, _ = running.communicate()
    os.close(theirs)
    os.close(ours)
    assert running.returncode == 0
    assert out.endswith("started\n")
    assert ("`tpuenv preflight`" in out) == (not synthesized)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_who_asks_to_stop_waits_until_cdktf_has_put_things_away(python: str, number: signal.Signals) -> None:
    """An interrupt comes to the whole group, as from a terminal, and SIGTERM to the command alone."""
    write_cdktf(
        python, "trap 'sleep 0.3; echo unlocked; exit 5' INT TERM", "echo started", "while :; do sleep 0.05; done"
    )
    with subprocess.Popen(
        as_program(python, "deploy", "--auto-approve"), cwd=ROOT, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stdout.readline() == "started\n"
        if number == signal.SIGINT:
            os.killpg(running.pid, number)
        else:
            running.send_signal(number)
        out, err = running.communicate()
    assert running.returncode == 5
    assert out.count("unlocked") == 1
    assert err == ""
