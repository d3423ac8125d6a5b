"""The axis of a chart: round values that enclose its own, written in a unit that suits them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Of the units of Cloud Monitoring, what people read: the largest first.
# https://cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.metricDescriptors
_READ_AS: dict[str, list[tuple[float, str]]] = {
    "By": [(2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")],
    "By/s": [(2**40, "TiB/s"), (2**30, "GiB/s"), (2**20, "MiB/s"), (2**10, "KiB/s"), (1, "B/s")],
    "s": [(86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds")],
    "us": [(1e6, "s"), (1e3, "ms"), (1, "µs")],
}


@dataclass(frozen=True, kw_only=True)
class Axis:
    ticks: Sequence[float]
    factor: float
    unit: str

    @property
    def span(self) -> float:
        return self.ticks[-1] - self.ticks[0]

    @property
    def texts(self) -> list[str]:
        return [f"{tick / self.factor:.6g}" for tick in self.ticks]

    def exactly(self, value: float) -> str:
        """One value with its unit."""
        return f"{round(value / self.factor, 1):.6g} {self.unit}".strip()


def axis_for(values: Sequence[float], unit: str) -> Axis:
    """From zero, or from below for what is below it, in three to six steps."""
    low, high = min([0.0, *values]), max([0.0, *values]) or 1.0
    factor, name = next(
        ((factor, name) for factor, name in _READ_AS.get(unit, []) if high >= factor),
        (1.0, "" if unit == "1" else unit),
    )
    rough = (high - low) / factor / 4
    power = 10 ** math.floor(math.log10(rough))
    step = next(step for step in (1, 2, 2.5, 5, 10) if step * power >= rough) * power * factor
    if unit in ("", "1") and all(value == int(value) for value in values):
        step = max(step, 1.0)  # of what is counted there are no halves
    first, last = math.floor(low / step), math.ceil(round(high / step, 6))
    return Axis(ticks=[step * index for index in range(first, last + 1)], factor=factor, unit=name)
