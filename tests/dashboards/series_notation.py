"""Prometheus's notation for series in unit tests, read and written; a label's value may be several: "a|b".

https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/#series
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, product

_ITEM = re.compile(r"(?P<start>_|-?[\d.]+)(?:(?P<step>[+-][\d.]+)?x(?P<times>\d+))?")

_LABEL_VALUE = re.compile('"([^"]*)"')


def series_of(name: str) -> Iterator[str]:
    """A series for each value of its labels that lists several."""
    between = _LABEL_VALUE.split(name)[::2]
    for values in product(*(value.split("|") for value in _LABEL_VALUE.findall(name))):
        yield between[0] + "".join(f'"{value}"{text}' for value, text in zip(values, between[1:], strict=True))


def values_of(text: str) -> list[float | None]:
    """One value an interval; None where there is no sample. Raises ValueError for what is not in the notation."""
    return [value for item in text.split() for value in _values(item)]


def _values(item: str) -> Iterator[float | None]:
    if not (match := _ITEM.fullmatch(item)):
        raise ValueError(f"'{item}': not a value, nor START+STEPxTIMES, STARTxTIMES or _xTIMES")
    times = int(match["times"] or 0)
    if match["start"] == "_":
        yield from [None] * max(times, 1)
    else:
        for index in range(times + 1):
            yield round(float(match["start"]) + index * float(match["step"] or 0), 9)


def text_of(values: Sequence[float | None]) -> str:
    """The values with four significant digits, equal ones that follow each other as one item."""
    written = []
    for value, group in groupby(None if value is None else float(f"{value:.4g}") for value in values):
        count = len([*group])
        if value is None:
            written.append(f"_x{count}")
        else:
            number = f"{value:.0f}" if value == int(value) else repr(value)
            written.append(f"{number}x{count - 1}" if count > 1 else number)
    return " ".join(written)
