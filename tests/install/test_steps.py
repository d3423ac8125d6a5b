"""The setup does each step once, goes on after an interruption, and never twice at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from install import packages
from install.install import STEPS, Step, install, to_do
from install.steps import CommandFailed, Completed, Layout, Progress, SetupError, content, run

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    root = tmp_path / "a folder"
    (root / "install").mkdir(parents=True)
    (root / ".venv" / "bin").mkdir(parents=True)
    return Layout(root=root)


def step(name: str, done: list[str], *, inputs: tuple[str, ...] = ("1",), stops: bool = False) -> Step:
    """A step that makes one file named after it."""

    def make(layout: Layout, _: Progress) -> None:
        done.append(name)
        (layout.venv / name).touch()
        if stops:
            raise KeyboardInterrupt

    return Step(
        name=name,
        doing=name,
        inputs=lambda layout: list(inputs),
        install=make,
        results=lambda layout: [layout.venv / name],
    )


def test_a_step_is_done_once(layout: Layout) -> None:
    done: list[str] = []
    steps = [step("packages", done), step("terraform", done)]
    install(layout, steps)
    install(layout, steps)
    assert done == ["packages", "terraform"]
    assert to_do(layout, steps) == []


def test_nothing_is_said_when_nothing_is_to_be_done(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [step("packages", [])]
    install(layout, steps)
    assert "setup: [1/1] packages: 0 s" in capsys.readouterr().out
    install(layout, steps)
    assert capsys.readouterr().out == ""


def test_a_step_is_done_again_when_what_it_is_made_from_changes(layout: Layout) -> None:
    done: list[str] = []
    install(layout, [step("packages", done), step("terraform", done)])
    install(layout, [step("packages", done, inputs=("2",)), step("terraform", done)])
    assert done == ["packages", "terraform", "packages"]


def test_a_step_is_done_again_when_what_it_made_is_gone(layout: Layout) -> None:
    done: list[str] = []
    steps = [step("packages", done), step("terraform", done)]
    install(layout, steps)
    (layout.venv / "terraform").unlink()
    install(layout, steps)
    assert done == ["packages", "terraform", "terraform"]


def test_an_interrupted_step_is_done_again_and_those_before_it_are_not(layout: Layout) -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        install(layout, [step("packages", done), step("terraform", done, stops=True)])
    install(layout, [step("packages", done), step("terraform", done)])
    assert done == ["packages", "terraform", "terraform"]


def test_a_step_interrupted_while_it_is_done_again_does_not_count_as_done(layout: Layout) -> None:
    done: list[str] = []
    install(layout, [step("packages", done)])
    with pytest.raises(KeyboardInterrupt):
        install(layout, [step("packages", done, inputs=("2",), stops=True)])
    assert [left.name for left in to_do(layout, [step("packages", done)])] == ["packages"]


def test_a_step_that_makes_nothing_is_an_error_and_not_an_endless_loop(layout: Layout) -> None:
    idle = Step(
        name="idle",
        doing="Idle",
        inputs=lambda _: [],
        install=lambda *_: None,
        results=lambda _: [layout.venv / "never"],
    )
    with pytest.raises(SetupError, match=r"never was not created"):
        install(layout, [idle])


def test_a_damaged_record_means_that_nothing_is_done(layout: Layout) -> None:
    Completed(layout).record("packages", ["1"])
    for damage in ("", "[]", '{"packages": "9', "\0"):
        (layout.venv / "setup.json").write_text(damage)
        assert not Completed(layout).is_current("packages", ["1"])


def test_a_change_of_a_lock_file_installs_again() -> None:
    """Of the real steps: they follow the two lock files."""
    followed = {step.name: step.inputs(Layout()) for step in STEPS}
    layout = Layout()
    for lock, names in {
        "requirements.txt": ["packages", "commands", "warm-up"],
        "package-lock.json": ["cdktf-cli"],
    }.items():
        digest = content(layout.root / lock)
        assert [name for name, inputs in followed.items() if digest in inputs] == names


def test_a_program_that_fails_is_reported_with_its_last_lines_and_the_log_has_the_rest(layout: Layout) -> None:
    program = "for number in range(100): print('line', number)\nraise SystemExit(3)"
    with pytest.raises(CommandFailed) as failed:
        run([sys.executable, "-c", program], layout=layout)
    assert "line 99" in str(failed.value)
    assert "line 50" not in str(failed.value)
    assert str(layout.log) in str(failed.value)
    assert "line 50" in layout.log.read_text()
    assert "[exit code 3]" in layout.log.read_text()


def test_programs_get_no_settings_that_would_install_elsewhere(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PIP_TARGET", "NODE_OPTIONS"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    environment = json.loads(run([sys.executable, "-c", program], layout=layout))
    assert not {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PIP_TARGET", "NODE_OPTIONS"} & set(environment)
    assert environment["HTTPS_PROXY"] == "http://proxy.example:3128"
    assert environment["PATH"].split(os.pathsep)[0] == str(layout.bin)


@pytest.mark.slow
def test_two_setups_do_not_work_at_the_same_time(layout: Layout) -> None:
    # What the setups print comes in pieces, into which the other one writes its own: each mark is one write instead.
    program = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from install.install import alone\n"
        "from install.steps import Layout\n"
        "marks = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "with alone(Layout(root=Path(sys.argv[1]))):\n"
        "    os.write(marks, b'in\\n'); time.sleep(0.3); os.write(marks, b'out\\n')"
    )
    marks = layout.root / "marks"
    setups = [
        subprocess.Popen([sys.executable, "-c", program, layout.root, marks], cwd=ROOT, stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [setup.wait() for setup in setups] == [0, 0]
    assert marks.read_text().splitlines() == ["in", "out", "in", "out"]


@pytest.mark.slow
def test_the_output_says_which_step_runs_and_how_many_packages_are_there(
    layout: Layout, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("install.steps.LOG_SECONDS", 0.01)
    (layout.root / "requirements.txt").write_text("one==1 \\\n    --hash=sha256:0\ntwo==2 \\\n    --hash=sha256:0\n")
    seen: list[str] = []

    def download(layout: Layout, progress: Progress) -> None:
        pip = "import time; print('Collecting one==1', flush=True); time.sleep(1)"
        run(
            [sys.executable, "-c", pip],
            layout=layout,
            on_line=packages.Counter(layout.root / "requirements.txt", progress),
        )
        seen.append(progress.detail)
        (layout.venv / "one").touch()

    only = Step(
        name="one",
        doing="Packages",
        inputs=lambda _: [],
        install=download,
        results=lambda _: [layout.venv / "one"],
    )
    install(layout, [only])
    assert seen == ["1 of 2 packages downloaded"]
    assert "setup: [1/1] Packages: 1 of 2 packages downloaded, " in capsys.readouterr().out


def test_an_environment_behind_a_symbolic_link_is_not_emptied(layout: Layout, tmp_path: Path) -> None:
    layout.venv.rename(tmp_path / "of-another-checkout")
    layout.venv.symlink_to(tmp_path / "of-another-checkout")
    with pytest.raises(SetupError, match="is a symbolic link"):
        packages.install(layout, Progress("packages"))
    assert (tmp_path / "of-another-checkout" / "bin").is_dir()
