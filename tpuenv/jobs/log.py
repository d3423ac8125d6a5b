"""The log of a pod: from where it was left, as lines that a terminal shows safely."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vocabulary.printable import printable

# Of the API server: RFC 3339 with nanoseconds, all of the same length, so that they are in order as text.
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")


@dataclass
class Position:
    """How far a log was read: the time of the last line, and how many lines of that time were read."""

    time: str = ""
    lines: int = 0


def new_lines(lines: Iterable[bytes], position: Position) -> Iterator[str]:
    """The lines that follow `position`, without their times, printable; `position` is then after each of them.

    A log that is read from a time on begins with lines of that second that were read before.
    """
    known, repeated = position.time, position.lines
    for line in lines:
        time, _, text = line.partition(b" ")
        if not _TIME.fullmatch(time):
            yield shown(line)
            continue
        at = time.decode()
        if at < known:
            continue
        if at == known and repeated:
            repeated -= 1
            continue
        position.lines = position.lines + 1 if at == position.time else 1
        position.time = at
        yield shown(text)


def shown(line: bytes) -> str:
    """A line as a terminal would have left it: of what a progress bar wrote over itself, the last; tabs as spaces.

    What is not UTF-8, and every character that a terminal would obey, is written as an escape.
    """
    text = line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", errors="backslashreplace")
    return printable(text.expandtabs())
