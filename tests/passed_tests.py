"""The tests that have passed: each run of a gate adds its own and leaves out those before, so that none runs twice."""

from __future__ import annotations

import os
from pathlib import Path

PASSED = "TPUENV_TESTS_PASSED"  # set by .ci/run


def passed_tests() -> Path:
    """The file with their ids, a line each, that the variable names; without it, a file that keeps nothing."""
    return Path(os.environ.get(PASSED, os.devnull))
