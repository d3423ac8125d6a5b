"""Tables for people: columns as wide as their widest cell."""

from __future__ import annotations

from collections.abc import Sequence

from vocabulary.printable import printable


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line a row, two spaces between the columns. What a terminal would obey is written as escapes."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
