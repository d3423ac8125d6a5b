"""The summary of `make run-workloads` names the tests that did not run because the run ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from environment.project import ROOT

CONFTEST = """
import sys
from pathlib import Path
from tests.workloads import conftest

def pytest_configure(config):
    config.addinivalue_line("markers", "workloads(recipe): as in pyproject.toml")
    conftest.PYTHON = Path(sys.executable)
    config.pluginmanager.register(conftest.Summary())
"""

TESTS = """
import os, signal, time
import pytest
pytestmark = pytest.mark.workloads("maxtext")

def test_first():
    pass

def test_second():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

@pytest.mark.workloads("hello-tpu")
def test_third():
    pass
"""


@pytest.mark.slow
def test_sigterm_ends_the_run_and_the_summary_names_what_did_not_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_of_recipes.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir", tmp_path, "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    summary = " ".join(done.stdout.partition("what ran of each recipe")[2].split())
    assert "maxtext ok 0 s first not run: second (the run ended during it)" in summary
    assert "hello-tpu not run 0 s nothing not run: third (the run ended before it)" in summary
