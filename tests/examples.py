"""How many examples Hypothesis tries: all of them with the slow tests, fewer where a person waits for `make test`."""

from __future__ import annotations

import os

ALL = "TPUENV_TEST_ALL_EXAMPLES"  # set by `make test-slow`
FAST = 10


def examples(number: int) -> int:
    """`number` with the slow tests, at most FAST otherwise."""
    return number if os.environ.get(ALL) else min(number, FAST)
