"""In one gate no test runs again after it has passed, and every other does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from environment.project import ROOT
from tests.passed_tests import PASSED

TESTS = """
import pathlib, pytest

@pytest.mark.parametrize("name", ["good", "repaired"])
def test_it(name):
    assert name == "good" or pathlib.Path("repaired").exists()

def test_that_is_skipped():
    pytest.skip()
"""


def run(folder: Path) -> str:
    """The last line of a pytest of its own, in two processes, with this project's conftest."""
    # By this variable pytest-xdist says that a process is one of its workers.
    others = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "-o", "addopts=", str(folder)],
        cwd=folder,
        env=others | {PASSED: str(folder / "passed"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    ).stdout.splitlines()[-1]


@pytest.mark.slow
def test_a_test_that_has_passed_is_left_out_and_one_that_failed_or_was_skipped_is_not(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    (tmp_path / "passed").touch()
    assert run(tmp_path).startswith("1 failed, 1 passed, 1 skipped in")
    (tmp_path / "repaired").touch()
    assert run(tmp_path).startswith("1 passed, 1 skipped in")
    assert run(tmp_path).startswith("1 skipped in")
