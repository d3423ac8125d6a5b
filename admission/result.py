"""The answer: a verdict, what each pod set gets, and every reason with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Any

from vocabulary.keys import TPU
from vocabulary.printable import counted, printable
from vocabulary.quantity import readable

FlavorResource = tuple[str, str]  # flavor, resource: what Kueue counts quota by


class Verdict(str, Enum):
    """From good to bad: starts now; starts when others are done; stays pending for good; is not even accepted."""

    ADMITTED = "admitted"
    WAITS = "waits"
    NEVER = "never"
    REFUSED = "refused"

    @property
    def badness(self) -> int:
        return list(Verdict).index(self)


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why not now. `code` is stable; `where` is a pod set or a field of the manifest; `fix` says what to change."""

    verdict: Verdict
    code: str
    where: str
    what: str
    fix: str = ""


def never(code: str, where: str, what: str, fix: str = "") -> Reason:
    """A reason for which the workload stays pending for good."""
    return Reason(verdict=Verdict.NEVER, code=code, where=where, what=what, fix=fix)


def waits(code: str, where: str, what: str, fix: str = "") -> Reason:
    """A reason that ends by itself, or when somebody else acts."""
    return Reason(verdict=Verdict.WAITS, code=code, where=where, what=what, fix=fix)


@dataclass(frozen=True, kw_only=True)
class PodSetPlan:
    """What Kueue gives to one pod set, or would once there is room.

    `flavors` is flavor by resource, empty where nothing is asked for or nothing can ever fit; `requests` is of all
    pods together; `slices` counts whole TPU slices, 0 for other pods or where the flavor's shape is not known.
    """

    name: str
    count: int
    flavors: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, Fraction] = field(default_factory=dict)
    slices: int = 0
    shape: str = ""  # "tpu-v6e-slice 4x4"

    @property
    def flavor(self) -> str:
        """The flavor that decides which nodes the pods run on: that of their chips, if they ask for any."""
        return self.flavors.get(TPU) or next(iter(self.flavors.values()), "")

    @property
    def usage(self) -> dict[FlavorResource, Fraction]:
        return {(flavor, resource): self.requests[resource] for resource, flavor in self.flavors.items()}


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The whole answer for one workload."""

    workload: str  # "JobSet research/hello-tpu"
    verdict: Verdict
    local_queue: str = ""
    cluster_queue: str = ""
    priority: int = 0
    pod_sets: tuple[PodSetPlan, ...] = ()
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    borrows: Mapping[FlavorResource, Fraction] = field(default_factory=dict)
    preempts: tuple[str, ...] = ()  # namespace/name of the Workloads that Kueue stops first

    def admission(self) -> dict[str, Any]:
        """`status.admission` of the Kueue Workload; a Workload with it among the objects counts as what is in use."""
        return {
            "clusterQueue": self.cluster_queue,
            "podSetAssignments": [
                {
                    "name": item.name,
                    "count": item.count,
                    "flavors": dict(item.flavors),
                    "resourceUsage": {name: exact(item.requests[name]) for name in item.flavors},
                }
                for item in self.pod_sets
            ],
        }

    def lines(self) -> tuple[str, ...]:
        """For people: the verdict first, then where, then why and what to do."""
        lines = (
            f"{self.workload}: {_HEADLINES[self.verdict]}",
            *self._queue_lines(),
            *(f"  {line}" for line in _table([_row(item, self.verdict) for item in self.pod_sets])),
            *(f"  {line}" for line in _borrowing(self.borrows)),
            *(line for reason in self.reasons for line in _reason_lines(reason)),
            *(f"  note: {note}" for note in self.notes),
        )
        return tuple(map(printable, lines))

    def _queue_lines(self) -> tuple[str, ...]:
        if not self.cluster_queue:
            return ()
        return (f"  queue {self.local_queue} -> ClusterQueue {self.cluster_queue}, priority {self.priority}",)


_HEADLINES = {
    Verdict.ADMITTED: "would be admitted now",
    Verdict.WAITS: "would wait",
    Verdict.NEVER: "would never start",
    Verdict.REFUSED: "would be refused",
}


def amount(resource: str, number: Fraction) -> str:
    """ "16 chips", "4 cpu", "64Gi memory": what there is, rounded down, so that asking for it fits."""
    return _amount(resource, number, up=False)


def asked(resource: str, number: Fraction) -> str:
    """The same of what is asked, rounded up: what is too much reads as more than what there is."""
    return _amount(resource, number, up=True)


def _amount(resource: str, number: Fraction, *, up: bool) -> str:
    unit = ("chip" if number == 1 else "chips") if resource == TPU else resource
    return f"{readable(resource, number, up=up)} {unit}"


def exact(number: Fraction) -> str:
    """A quantity that loses nothing; Kueue counts cores in thousandths and everything else in whole units."""
    return str(number.numerator) if number.denominator == 1 else f"{number * 1000}m"


def _borrowing(borrows: Mapping[FlavorResource, Fraction]) -> Iterator[str]:
    """A flavor in one line, those of chips first; where a flavor has both, with what comes with the chips."""
    for flavor in sorted({flavor for flavor, _ in borrows}, key=lambda flavor: ((flavor, TPU) not in borrows, flavor)):
        mine = {resource: asked(resource, number) for (of, resource), number in sorted(borrows.items()) if of == flavor}
        chips = mine.pop(TPU, "")
        rest = " and ".join(mine.values())
        words = (
            f"{chips} of flavor {flavor}" + f" (with {rest})" * bool(rest) if chips else f"{rest} of flavor {flavor}"
        )
        yield f"borrows {words} from other teams; they may take it back"


def _row(plan: PodSetPlan, verdict: Verdict) -> tuple[str, str, str, str]:
    flavor = plan.flavor or ", ".join(sorted(set(plan.flavors.values()))) or "-"
    asks = ", ".join(asked(resource, number) for resource, number in plan.requests.items() if number) or "nothing"
    if plan.slices:
        asks = f"{counted(plan.slices, 'slice')} of {plan.shape}: {asks}"
    gets = "gets" if verdict in (Verdict.ADMITTED, Verdict.WAITS) else "asks for"
    return plan.name, counted(plan.count, "pod"), f"flavor {flavor}", f"{gets} {asks}"


def _table(rows: list[tuple[str, str, str, str]]) -> list[str]:
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows]


def _reason_lines(reason: Reason) -> tuple[str, ...]:
    where = f"{reason.where}: " if reason.where else ""
    return (f"  {where}{reason.what}", *((f"    -> {reason.fix}",) if reason.fix else ()))
