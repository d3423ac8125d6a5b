"""The cost of an environment, and what a plan changes of it, as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from environment import CapacityMode
from environment.list_prices import Source
from tpuenv.cost.amount import HOURS_A_MONTH, Amount, Cost
from tpuenv.cost.report import NOT_COUNTED, Report, Row
from tpuenv.terminal.colours import wrapped

_LEAST_WIDTHS = (9, 9, 10, 10)  # of the columns at least: idle and busy an hour, idle and busy a month


def lines(report: Report) -> Iterator[str]:
    """A row for each part, what the numbers mean, and where the prices are from."""
    together = (
        Row(name="total", label="everything", cost=report.total),
        Row(name="kept", label="foundation alone", cost=report.kept),
    )
    sections = {
        "pool groups": report.groups,
        "TPU VMs": report.tpu_vms,
        "capacity modes": report.modes if len(report.modes) > 1 else (),
        "teams, with the slices that they own": report.teams if len(report.teams) > 1 else (),
        "the rest": report.rest,
        "together": together,
    }
    width = max(len(row.label) for rows in sections.values() for row in rows) + 2
    columns = zip(*(_cells(row.cost) for rows in sections.values() for row in rows), strict=True)
    widths = [max(least, *map(len, cells)) for least, cells in zip(_LEAST_WIDTHS, columns, strict=True)]
    hour, month = (sum(pair) + 1 for pair in (widths[:2], widths[2:]))
    yield (
        f"{report.region}, USD".ljust(width) + "an hour".rjust(hour) + f"a month of {HOURS_A_MONTH} h".rjust(month + 1)
    )
    yield " " * width + _columns(("idle ", "busy ", "idle ", "busy "), widths)
    for heading, rows in sections.items():
        yield from ([heading] if rows else [])
        yield from (f"  {row.label}".ljust(width) + _columns(_cells(row.cost), widths) for row in rows)
    yield ""
    for note in _notes(report):
        yield from wrapped(note)
    yield "Prices:"
    yield from _source_lines(report.sources)


def difference(before: Cost, after: Cost, sources: Iterable[Source]) -> Iterator[str]:
    """What a change makes of the cost; no line if nothing."""
    change = after - before
    idle, busy = change.idle, change.busy
    if not any((idle.usd, idle.unknown, busy.usd, busy.unknown)):
        return
    days = sorted({source.as_of for source in sources if source.as_of})
    dated = f" (prices of {' to '.join(dict.fromkeys((days[0], days[-1])))})" if days else ""
    unknown = {**idle.unknown, **busy.unknown}
    what = "cost, without what has no known price" if unknown else "cost"
    yield f"{what}{dated}: {busy.usd:+,.2f} USD an hour while jobs use every slice, {idle.usd:+,.2f} while none runs;"
    plus = " (+: more, at unknown prices)" if before.busy.unknown or after.busy.unknown else ""
    yield f"  of the stacks above at most {_money(before.busy)} until now, and then {_money(after.busy)}{plus}"
    if unknown:
        yield f"  no known price: {'; '.join(_counted(unknown, '+,'))}"


def _columns(cells: Iterable[str], widths: Iterable[int]) -> str:
    return "".join(cell.rjust(width + 1) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cells(cost: Cost) -> Iterator[str]:
    for times, places in ((1, 2), (HOURS_A_MONTH, 0)):
        for amount in (cost.idle * times, cost.busy * times):
            if amount.unknown and not amount.usd:
                yield "unknown "
            else:
                yield f"{amount.usd:,.{places}f}{'+' if amount.unknown else ' '}"


def _notes(report: Report) -> Iterator[str]:
    if report.total.busy.unknown:
        yield (
            f"A number with + is a minimum: no price is known of {'; '.join(_counted(report.total.busy.unknown))}. "
            "`tpuenv cost --prices FILE` takes yours (docs/cost.md)."
        )
    yield "idle: no job runs; slices cost the same unless their nodes come and go with jobs. busy: jobs use them all."
    saved = " to ".join(dict.fromkeys((_money(report.saved.idle), _money(report.saved.busy))))
    yield f"Destroying all stacks but foundation saves {saved} USD an hour; foundation is paid by use."
    if any(row.name == CapacityMode.SPOT.value for row in report.modes):
        yield "Prices of spot change up to once in 30 days."
    yield f"Not counted: {'; '.join(NOT_COUNTED)}."


def _money(amount: Amount) -> str:
    """ "86.40", or "86.40+" where something has no known price."""
    return f"{amount.usd:,.2f}{'+' if amount.unknown else ''}"


def _counted(unknown: Mapping[str, int], form: str = ",") -> Iterator[str]:
    return (f"{count:{form}} {name}" for name, count in unknown.items())


def _source_lines(sources: Iterable[Source]) -> Iterator[str]:
    by_source: dict[tuple[str, str], list[str]] = {}
    for source in sources:
        by_source.setdefault((source.as_of, source.source), []).append(source.section)
    for (as_of, where), sections in by_source.items():
        yield f"  {as_of or 'no date'}  {', '.join(sections)}: {where or 'no source'}"
