"""Terraform as cdktf gets it: at a terminal it is still Terraform's, and it outlives a Terraform that has failed."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cdktf_patches.held_terminal import HELD_SECONDS
from install import cdktf_cli
from install.steps import ROOT, Layout

pytestmark = pytest.mark.slow  # a terminal is held for a second

# Reports the signals it gets for half a second after the first, and frees its lock with an exit code of its own.
PATIENT = """\
import os, signal, sys, time
got = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: got.append(number))
print("started", flush=True)
while not got:
    time.sleep(0.02)
time.sleep(0.5)
open(sys.argv[1], "w").write(" ".join(signal.Signals(number).name for number in got))
sys.exit(7)
"""


LIMIT_SECONDS = 120


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """An environment whose folder needs quoting."""
    layout = Layout(root=tmp_path / 'it\'s a "folder" $HOME')
    layout.bin.mkdir(parents=True)
    layout.python.symlink_to(sys.executable)
    (layout.root / "cdktf_patches").symlink_to(ROOT / "cdktf_patches")
    cdktf_cli.write_command(layout)
    return layout


@pytest.fixture
def terraform(layout: Layout) -> str:
    return str(layout.bin / "terraform-for-cdktf")


@pytest.fixture
def terraform_held_long(layout: Layout, terraform: str) -> str:
    """The same, but after a failure it stays longer than any test waits."""
    text = (ROOT / "cdktf_patches" / "held_terminal.py").read_text(encoding="utf-8")
    (layout.root / "cdktf_patches").unlink()
    (layout.root / "cdktf_patches").mkdir()
    longer = text.replace(f"HELD_SECONDS = {HELD_SECONDS}\n", f"HELD_SECONDS = {10 * LIMIT_SECONDS}\n")
    assert longer != text
    (layout.root / "cdktf_patches" / "held_terminal.py").write_text(longer, encoding="utf-8")
    return terraform


class Terminal:
    """A program in a terminal of its own, as cdktf runs Terraform."""

    def __init__(self, program: str, *arguments: str, real: str) -> None:
        self.started = time.monotonic()
        self.pid, self.ours = pty.fork()
        if self.pid == 0:
            os.execve(program, [program, *arguments], {**os.environ, "TPUENV_TERRAFORM": real})
        self.shown = ""

    def read_until(self, words: str) -> None:
        while words not in self.shown:
            self.shown += os.read(self.ours, 4096).decode()

    def end(self) -> tuple[int, float]:
        """The exit code, and how long it took, in seconds."""
        ended, status = 0, 0
        while not ended:
            if time.monotonic() - self.started > LIMIT_SECONDS:
                os.kill(self.pid, signal.SIGKILL)
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            time.sleep(0.01)
        return os.waitstatus_to_exitcode(status), time.monotonic() - self.started


def script(tmp_path: Path, *lines: str) -> str:
    program = tmp_path / "real terraform"
    program.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    program.chmod(0o755)
    return str(program)


def test_after_a_failure_the_terminal_stays_until_it_has_been_read(terraform: str, tmp_path: Path) -> None:
    real = script(tmp_path, 'echo "Error: $1 refused"', "exit 3")
    terminal = Terminal(terraform, "destroy", real=real)
    terminal.read_until("Error: destroy refused")
    code, seconds = terminal.end()
    assert code == 3
    assert seconds >= HELD_SECONDS


def test_success_is_not_delayed(terraform_held_long: str, tmp_path: Path) -> None:
    terminal = Terminal(terraform_held_long, "apply", real=script(tmp_path, "exit 0"))
    assert terminal.end()[0] == 0


def test_without_a_terminal_nothing_is_delayed(terraform_held_long: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [terraform_held_long, "version", "-json"], capture_output=True, text=True, timeout=LIMIT_SECONDS,
        env={**os.environ, "TPUENV_TERRAFORM": script(tmp_path, 'echo "$*"', "exit 4")},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (4, "version -json\n")


def test_terraform_asks_and_is_answered_at_its_terminal(terraform: str, tmp_path: Path) -> None:
    real = script(tmp_path, "test -t 0 && test -t 1 || exit 9", "printf 'Approve? '; read answer; echo got $answer")
    terminal = Terminal(terraform, "apply", real=real)
    terminal.read_until("Approve? ")
    os.write(terminal.ours, b"yes\n")
    terminal.read_until("got yes")
    assert terminal.end()[0] == 0


@pytest.mark.parametrize("how", ["typed", "SIGINT", "SIGTERM", "terminal lost"])
def test_terraform_gets_one_signal_to_stop_and_is_waited_for(terraform: str, tmp_path: Path, how: str) -> None:
    """At a second interrupt Terraform gives up at once and leaves its lock behind."""
    patient = tmp_path / "patient.py"
    patient.write_text(PATIENT)
    told = tmp_path / "told"
    real = script(tmp_path, f"exec '{sys.executable}' '{patient}' '{told}'")
    terminal = Terminal(terraform, "apply", real=real)
    terminal.read_until("started\r\n")
    if how == "typed":  # as cdktf does when it is interrupted itself
        os.write(terminal.ours, b"\x03")
    elif how == "terminal lost":
        os.close(terminal.ours)
    else:
        os.kill(terminal.pid, signal.Signals[how])
    code, _ = terminal.end()
    assert code == 7
    assert told.read_text() == ("SIGTERM" if how == "SIGTERM" else "SIGINT")


def test_a_missing_terraform_is_reported(terraform: str) -> None:
    terminal = Terminal(terraform, "apply", real="no-such-terraform")
    terminal.read_until("no-such-terraform: No such file or directory")
    assert terminal.end()[0] == 127


@pytest.mark.parametrize("at_terminal", [True, False])
def test_after_an_interrupt_no_terraform_is_begun(terraform: str, tmp_path: Path, at_terminal: bool) -> None:
    """`cdktf_interrupts.cjs` sets the variable in the environment of all that cdktf still wants to start."""
    real = script(tmp_path, "echo begun")
    settings = {**os.environ, "TPUENV_TERRAFORM": real, "TPUENV_INTERRUPTED": "1"}
    ours, theirs = pty.openpty() if at_terminal else os.pipe()
    with subprocess.Popen([terraform, "apply"], env=settings, cwd=tmp_path, stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        said = os.read(ours, 4096).decode()
    os.close(ours)
    assert running.returncode == 130
    assert said.strip() == f"interrupted: {tmp_path.name} is not begun"
