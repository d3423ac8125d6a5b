"""The rows as a table for people, as JSON, and the verdict of all."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from tpuenv.terminal.colours import Tone
from tpuenv.terminal.table import aligned
from tpuenv.verification.rows import Row, Verdict, counts, exit_code
from vocabulary.printable import printable

VERSION = 1  # goes up when a field is renamed, removed, or means something else

_HEADINGS = ("VERDICT", "TEAM", "GROUP", "WHAT", "EXPECTED", "MEASURED")
_TONES = {Verdict.OK: Tone.GOOD, Verdict.FAILED: Tone.BAD}
_VERDICTS = {0: "verified", 1: "failed", 3: "incomplete"}


def lines(rows: Sequence[Row]) -> Iterator[tuple[str, Tone | None]]:
    """The table, below each row what to do, and the verdict; each line with its tone."""
    headings, *table = aligned([_HEADINGS, *map(_cells, rows)])
    yield headings, Tone.TITLE
    for row, line in zip(rows, table, strict=True):
        yield line, _TONES.get(row.verdict, Tone.WARNING)
        if row.fix:
            yield f"  {printable(row.fix)}", None
    yield "", None
    yield summary(rows), _TONES[Verdict.FAILED] if exit_code(rows) == 1 else None


def summary(rows: Sequence[Row]) -> str:
    """The verdict in one line: how many rows there are of each kind."""
    code, of = exit_code(rows), counts(rows)
    if code == 0:
        return f"Verified: all {len(rows)} rows are ok."
    numbers = ", ".join(f"{number} {verdict}" for verdict, number in of.items() if number)
    if code == 1:
        return f"Not verified, something failed: {numbers}."
    return f"Nothing failed, and not all is verified: {numbers}."


def document(rows: Sequence[Row]) -> dict[str, Any]:
    """What `tpuenv verify --json` prints; docs/verify.md describes it."""
    return {
        "version": VERSION,
        "verdict": _VERDICTS[exit_code(rows)],
        "counts": counts(rows),
        "rows": [{**dataclasses.asdict(row), "verdict": row.verdict.value} for row in rows],
    }


def _cells(row: Row) -> tuple[str, ...]:
    return row.verdict.value, row.team, row.group or "-", row.what, row.expected or "-", row.measured
