"""A test that waits for ever ends, with all that it has started; tests in the background are not deaf to SIGINT."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from environment.project import ROOT
from rehearsal import started_processes

WAITS_FOR_EVER = """
import subprocess

def test_that_waits(request):
    with subprocess.Popen(["sh", "-c", "echo $$; sleep 600"], stdout=subprocess.PIPE, text=True) as running:
        pid = running.stdout.readline()
        with open(request.config.rootpath / "pid", "w") as file:
            file.write(pid)
        running.wait()
"""

TRAPS_AN_INTERRUPT = """
import signal, subprocess

def test_that_interrupts():
    script = "trap 'exit 5' INT; echo started; while :; do sleep 0.05; done"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as running:
        running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait() == 5
"""


def run(folder: Path, test: str, *, limit: float, ignoring: bool = False) -> subprocess.CompletedProcess[str]:
    """A pytest of its own, with this project's conftest; `ignoring` SIGINT as in the background of a script."""
    (folder / "test_it.py").write_text(test)
    places = [str(ROOT), str(ROOT / "tests")]
    (folder / "conftest.py").write_text(f"import sys\nsys.path[:0] = {places}\nfrom tests.conftest import *\n")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", str(limit), str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignoring else None,
    )


@pytest.mark.slow
def test_a_test_that_waits_for_ever_fails_and_leaves_no_process(tmp_path: Path) -> None:
    done = run(tmp_path, WAITS_FOR_EVER, limit=10)
    assert done.returncode == 1, done.stdout
    assert "Timeout (>10.0s)" in done.stdout
    assert not started_processes.started(int((tmp_path / "pid").read_text()))


@pytest.mark.slow
def test_where_sigint_is_ignored_a_script_under_test_can_still_trap_it(tmp_path: Path) -> None:
    done = run(tmp_path, TRAPS_AN_INTERRUPT, limit=60, ignoring=True)
    assert done.returncode == 0, done.stdout
