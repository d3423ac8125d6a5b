"""The report as lines for people: a table, and below each row that is not ok what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpuenv.preflight.report import Section, counts
from tpuenv.preflight.row import Row, Verdict
from tpuenv.terminal.colours import Tone
from vocabulary.printable import printable

_HEADINGS = ("VERDICT", "WHAT", "NEED", "HAVE")
_TONES = {Verdict.OK: Tone.GOOD, Verdict.MISSING: Tone.BAD}


def lines(sections: Sequence[Section]) -> Iterator[tuple[str, Tone | None]]:
    """Each line with the tone of its verdict."""
    rows = [row for section in sections for row in section.rows]
    cells = [_HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADINGS))]
    yield "  " + _line(_HEADINGS, widths), Tone.TITLE
    for section in sections:
        yield section.name, Tone.TITLE
        for row in section.rows:
            yield f"  {_line(_cells(row), widths)}", _TONES.get(row.verdict, Tone.WARNING)
            if row.fix:
                yield f"    {printable(row.fix)}", None
    yield "", None
    yield _summary(sections), None


def _summary(sections: Sequence[Section]) -> str:
    of = counts(sections)
    missing, unknown, ok = (of[verdict.value] for verdict in (Verdict.MISSING, Verdict.UNKNOWN, Verdict.OK))
    if of[Verdict.NOT_ASKED.value]:
        return "Nothing else could be asked. Correct the above first."
    if missing:
        return f"{missing} missing, {unknown} unknown, {ok} ok. Correct what is missing before you deploy."
    if unknown:
        return (
            f"Nothing is missing, {unknown} unknown, {ok} ok. Check yourself what is unknown, or grant what it takes."
        )
    return f"All {ok} checks are ok."


def _cells(row: Row) -> tuple[str, ...]:
    return tuple(map(printable, (row.verdict.value, row.what, row.need, row.have)))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
