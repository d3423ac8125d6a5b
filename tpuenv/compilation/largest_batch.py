"""The largest batch a device that fits, found by compiling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tpuenv.compilation.alternatives import LEAST_BATCH, half
from tpuenv.compilation.answers import Answer, Compiled, Refused

MOST = 4096.0  # sequences a device and step; more is not looked for


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A batch, and what the compiler answered."""

    batch: float
    answer: Answer


def search(first: float, ask: Callable[[float], Answer]) -> Iterator[Tried]:
    """Every batch that is compiled, in that order: the largest one with a Compiled answer is the result.

    Doubles from `first` while it fits, or halves while it does not, then halves the interval. It is assumed that a
    batch fits if a larger one does. Ends at once where MaxText refuses the first batch, and below it where it refuses a
    fraction.
    """
    answer = ask(first)
    yield Tried(batch=first, answer=answer)
    if isinstance(answer, Refused):
        return
    fits, too_large = (first, 0.0) if isinstance(answer, Compiled) else (0.0, first)
    while not too_large and fits < MOST:
        batch = min(2 * fits, MOST)
        answer = ask(batch)
        yield Tried(batch=batch, answer=answer)
        fits, too_large = (batch, 0.0) if isinstance(answer, Compiled) else (fits, batch)
    while not fits and too_large > LEAST_BATCH:
        batch = half(too_large)
        answer = ask(batch)
        yield Tried(batch=batch, answer=answer)
        if isinstance(answer, Refused):
            return
        fits, too_large = (batch, too_large) if isinstance(answer, Compiled) else (0.0, batch)
    while fits >= 1 and too_large - fits > 1:
        batch = float((fits + too_large) // 2)
        answer = ask(batch)
        yield Tried(batch=batch, answer=answer)
        fits, too_large = (batch, too_large) if isinstance(answer, Compiled) else (fits, batch)


def largest(tried: Iterable[Tried]) -> float | None:
    """The largest batch that fits, or None."""
    return max((one.batch for one in tried if isinstance(one.answer, Compiled)), default=None)
