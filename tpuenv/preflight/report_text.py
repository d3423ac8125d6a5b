"""The report as lines for people: a table, and below each row that is not ok what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpuenv.preflight.report import Section, counts
from tpuenv.preflight.row import Verdict
from tpuenv.terminal.colours import Tone
from tpuenv.terminal.table import aligned
from vocabulary.printable import printable

_HEADINGS = ("VERDICT", "WHAT", "NEED", "HAVE")
_TONES = {Verdict.OK: Tone.GOOD, Verdict.MISSING: Tone.BAD}


def lines(sections: Sequence[Section]) -> Iterator[tuple[str, Tone | None]]:
    """Each line with the tone of its verdict."""
    rows = [row for section in sections for row in section.rows]
    cells = [(row.verdict.value, row.what, row.need, row.have) for row in rows]
    texts = iter(aligned([_HEADINGS, *cells]))
    yield f"  {next(texts)}", Tone.TITLE
    for section in sections:
        yield section.name, Tone.TITLE
        for row in section.rows:
            yield f"  {next(texts)}", _TONES.get(row.verdict, Tone.WARNING)
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
