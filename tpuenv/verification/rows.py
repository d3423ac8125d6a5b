"""A row of the report, and the rows that follow from what hello-tpu has printed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from manifests.render import Run
from vocabulary.printable import brief, counted, shortened

_ALL = "write, read, delete"  # an object, as hello-tpu names what it does
_MEASURED = ("all-reduce", "product", "multiplication", "all-gather")  # with which its problems begin
_MOST = 3  # of several problems in one cell
_LONGEST = 200  # characters of what a program has printed, in one cell


class Verdict(Enum):
    """The value is the word in the report."""

    OK = "ok"
    FAILED = "failed"
    WAITING = "waiting"  # for machines of Google's, or for others: no fault of the environment
    BUSY = "busy"  # a slice would have been taken from a job
    SIMULATED = "simulated"  # as expected, on nodes or devices that are not real
    NOT_VERIFIED = "not verified"


@dataclass(frozen=True, kw_only=True)
class Row:
    """`fix` is what to do; "" where there is nothing."""

    team: str
    group: str
    what: str
    expected: str
    measured: str
    verdict: Verdict
    fix: str = ""


def row(run: Run, what: str, expected: str, measured: str, verdict: Verdict, fix: str = "") -> Row:
    """A row about a run."""
    group = run.group.name if run.group else ""
    fix = "" if verdict in (Verdict.OK, Verdict.SIMULATED) else fix
    return Row(
        team=run.team.name,
        group=group,
        what=what,
        expected=expected,
        measured=measured,
        verdict=verdict,
        fix=fix,
    )


def exit_code(rows: Sequence[Row]) -> int:
    """0 if all is verified, 1 if something failed, 3 if nothing failed and not all is verified."""
    verdicts = {item.verdict for item in rows}
    if Verdict.FAILED in verdicts:
        return 1
    return 0 if verdicts == {Verdict.OK} else 3


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many rows there are of each verdict."""
    of = Counter(item.verdict for item in rows)
    return {verdict.value: of[verdict] for verdict in Verdict}


def rows_of_report(run: Run, report: Mapping[str, Any], others: Sequence[str]) -> Iterator[Row]:
    """What one host of the run has measured; `report` is its line of JSON (manifests/hello-tpu/README.md), `others` are
    the buckets that must have been refused.
    """
    assert run.group is not None
    slice_, named = run.group.slice, report.get("device")
    device = shortened(named, longest=_LONGEST) if isinstance(named, str) and named else "no device"
    real = device.startswith("TPU")
    problems = report.get("problems") or []
    of_group = f"`tpuenv submit hello-tpu --team {run.team.name} --group {run.group.name}`"
    nodes = f"look at the nodes of pool group {run.group.name}: `tpuenv status`; then {of_group}"
    for what, number in (("hosts", slice_.hosts), ("chips", slice_.chips)):
        seen = report.get(what)
        simulated = what == "chips" and not real
        good = Verdict.SIMULATED if simulated else Verdict.OK
        measured = f"{brief(seen)}, and they are {device} devices" if simulated else brief(seen)
        right = seen == number and type(seen) is int  # in Python true == 1
        yield row(run, what, str(number), measured, good if right else Verdict.FAILED, nodes)
    wrong = [item for item in problems if item.startswith(_MEASURED)]
    if not isinstance(report.get("all_reduce"), dict):
        yield row(run, "sums and products", "exact", "not measured", Verdict.NOT_VERIFIED, "correct the rows above")
    else:
        fix = f"a chip or a link computes wrong: {of_group} again, and give the node's name to Google's support"
        yield row(run, "sums and products", "exact", shortly(wrong) or "exact", _ok(not wrong), fix)
    yield _bandwidth(run, report, real=real)
    yield from _buckets(run, report, others, problems)
    yield _services(run, report)


def _bandwidth(run: Run, report: Mapping[str, Any], *, real: bool) -> Row:
    """There is no bound below which it counts as wrong: Google publishes none."""
    assert run.group is not None
    what, expected = "bandwidth", "measured"
    gathers = report.get("all_gather")
    if gathers == [] and run.group.slice.chips == 1:
        return row(run, what, expected, "one chip has no links", Verdict.OK)
    gather = next((item for item in gathers or [] if isinstance(item, dict) and item.get("within") == "slice"), {})
    gbytes, share = gather.get("gbytes_per_second_per_chip"), gather.get("share_of_data_sheet")
    if not _is_measured(gbytes):
        return row(run, what, expected, "not measured", Verdict.NOT_VERIFIED, "correct what failed, and run this again")
    measured = f"{gbytes} GB/s a chip"
    if _is_measured(share):
        measured += f", {share:.0%} of its links"
    if not real:
        measured += " between processes"
    return row(run, what, expected, measured, Verdict.OK if real else Verdict.SIMULATED)


def _is_measured(number: object) -> bool:
    """Not so are null, infinity and what is no number; the program writes all its measurements with a point."""
    return isinstance(number, float) and 0 < number < math.inf


def _buckets(run: Run, report: Mapping[str, Any], others: Sequence[str], problems: Sequence[str]) -> Iterator[Row]:
    own = report.get("own_bucket") or {}
    bucket = run.environment.names.bucket(run.team.name)
    words = ", ".join(what if said == "ok" else f"{what}: {said}" for what, said in own.items())
    why = shortly([item for item in problems if item.startswith(f"bucket {bucket}: ")])
    yield row(
        run,
        "own bucket",
        _ALL,
        shortened(words, longest=_LONGEST) or why or "not tried",
        _ok(words == _ALL),
        "`tpuenv deploy` grants it; after a deploy it can take 7 minutes until a grant counts, so run this again then",
    )
    tried = report.get("other_buckets") or {}
    open_ = [f"{name}: {said}" for name, said in tried.items() if said != "refused"]
    missing = [name for name in others if name not in tried]
    refused = f"{sum(said == 'refused' for said in tried.values())} refused"
    measured = shortly(open_) or (f"{counted(len(missing), 'bucket')} not tried" if missing else refused)
    first = next((name for name in others if tried.get(name, "").startswith("its objects")), "")
    grants = f"`gcloud storage buckets get-iam-policy gs://{first}` and that of the project say which roles do it"
    otherwise = "correct the row above" if missing else "run this again"
    fix = f"{grants}; take them away" if first else otherwise
    yield row(run, "other buckets", f"{len(others)} refused", measured, _ok(not open_ and not missing), fix)


def _services(run: Run, report: Mapping[str, Any]) -> Row:
    tried = report.get("other_services") or {}
    addresses = run.settings.get("other_services", "").split(",")
    reached = [f"{address}: reached" for address in addresses if tried.get(address) == "reached"]
    refused = sum(tried.get(address) == "refused" for address in addresses)
    otherwise = Verdict.OK if refused == len(addresses) else Verdict.NOT_VERIFIED
    return row(
        run,
        "other Services",
        f"{len(addresses)} refused",
        shortly(reached) or f"{refused} refused",
        Verdict.FAILED if reached else otherwise,
        "`tpuenv deploy` puts the NetworkPolicies back: docs/security.md" if reached else "run this again",
    )


def _ok(good: bool) -> Verdict:
    return Verdict.OK if good else Verdict.FAILED


def shortly(problems: Sequence[str]) -> str:
    """The first of several problems, and how many more there are; "" for none."""
    more = f"; and {len(problems) - _MOST} more" if len(problems) > _MOST else ""
    return "; ".join(shortened(item, longest=_LONGEST) for item in problems[:_MOST]) + more
