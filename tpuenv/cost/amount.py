"""Sums of money of which a part may have no known price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

HOURS_A_MONTH = 730  # as Google counts a month: 365 days of 24 hours, by 12


@dataclass(frozen=True)
class Amount:
    """USD an hour, and how many there are of each thing whose price is not known."""

    usd: Decimal = Decimal(0)
    unknown: Mapping[str, int] = field(default_factory=dict)  # none has the count 0

    def __add__(self, other: Amount) -> Amount:
        names = dict.fromkeys([*self.unknown, *other.unknown])
        counts = {name: self.unknown.get(name, 0) + other.unknown.get(name, 0) for name in names}
        return Amount(self.usd + other.usd, {name: count for name, count in counts.items() if count})

    def __mul__(self, times: int) -> Amount:
        return Amount(self.usd * times, {name: count * times for name, count in self.unknown.items() if times})

    def __sub__(self, other: Amount) -> Amount:
        return self + other * -1


@dataclass(frozen=True)
class Cost:
    """USD an hour while no job runs, and while jobs use every slice and the CPU pool is at its largest."""

    idle: Amount = field(default_factory=Amount)
    busy: Amount = field(default_factory=Amount)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.idle + other.idle, self.busy + other.busy)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.idle - other.idle, self.busy - other.busy)
