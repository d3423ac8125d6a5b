"""The search for the largest batch: what is compiled, in which order, and what comes out."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tests.tpuenv.compilation.ground import recorded
from tpuenv.compilation.alternatives import LEAST_BATCH
from tpuenv.compilation.largest_batch import MOST, largest, search

FITS, TOO_LARGE, REFUSED = recorded("fits"), recorded("does-not-fit"), recorded("assertion")


def searched(first: float, limit: float, refused_below: float = 0) -> tuple[float | None, list[float]]:
    """The result where everything up to `limit` fits, and the batches that were compiled."""
    tried = list(
        search(first, lambda batch: REFUSED if batch < refused_below else FITS if batch <= limit else TOO_LARGE)
    )
    return largest(tried), [one.batch for one in tried]


def test_it_doubles_while_it_fits_and_then_halves_the_interval() -> None:
    assert searched(2, 11) == (11, [2, 4, 8, 16, 12, 10, 11])


def test_it_halves_while_it_does_not_fit() -> None:
    assert searched(8, 3) == (3, [8, 4, 2, 3])


def test_below_one_sequence_a_device_there_are_halves() -> None:
    assert searched(4, 0.3) == (0.25, [4, 2, 1, 0.5, 0.25])


def test_it_ends_where_maxtext_takes_no_fraction() -> None:
    assert searched(1, 0.3, refused_below=1) == (None, [1, 0.5])


def test_it_ends_where_maxtext_refuses_the_run() -> None:
    assert searched(1, 8, refused_below=MOST) == (None, [1])


def test_what_never_fits_and_what_always_fits_ends() -> None:
    assert searched(1, 0)[0] is None
    assert searched(3, math.inf)[0] == MOST


@given(first=st.integers(1, 100), limit=st.integers(1, 5000))
def test_the_result_is_the_largest_whole_batch_that_fits(first: int, limit: int) -> None:
    result, batches = searched(first, limit)
    assert result == min(limit, MOST)
    assert len(batches) == len({*batches}) <= 2 * math.log2(MOST) + 2
    assert all(batch >= LEAST_BATCH for batch in batches)
