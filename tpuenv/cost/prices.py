"""A price file of one's own, over the list prices.

A price file is YAML or JSON. Each section is optional, and so are `as_of` and `source`; prices are in USD:

    chip_hour:                      # of TPUs, by the series of the machine type and the capacity
      as_of: 2026-11-01
      source: our contract
      usd: {ct6e: {on-demand: {us-east5: 1.89}, reservation: 1.22}}
    vcpu_hour: {usd: {n2: 0.025}}   # of CPU nodes, by series, and gb_hour likewise
    disk_gib_month: {usd: {hyperdisk-balanced: 0.09}}
    cluster_hour: {usd: 0.1}        # of a cluster; nat_vm_hour: of Cloud NAT for a node, nat_most_hour: for all

One price in the place of a mapping is for all that the mapping could name: here 1.22 for every region.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from environment.cpu_machine_types import SERIES
from environment.fleet.model import CapacityMode
from environment.fleet.reader import Reader
from environment.fleet.values import meant
from environment.list_prices import Prices, list_prices
from environment.locations import ZONES
from environment.tpu_catalogue import MACHINE_TYPES
from tpuenv.failure import WrongArgument
from vocabulary.text_file import Unreadable, read_text
from vocabulary.yaml_text import NotYaml, Value, parse

_MOST_KIB = 256
_HOLDS = "sections of prices, such as chip_hour"

# What may be bought. Queued provisioning is billed as flex-start: both are the Dynamic Workload Scheduler's.
CAPACITIES = tuple(mode.value for mode in CapacityMode if mode is not CapacityMode.QUEUED)

_CHOICES = {
    "TPU machine series": tuple(dict.fromkeys(machine.series for machine in MACHINE_TYPES)),
    "series of CPU machines": SERIES,
    "capacity": CAPACITIES,
    "type of boot disk": tuple(sorted({disk for machine in MACHINE_TYPES for disk in machine.boot_disks})),
}
_REGION = "region"

# Section -> what its keys are, from the outermost to the innermost.
SECTIONS: dict[str, tuple[str, ...]] = {
    "chip_hour": ("TPU machine series", "capacity", _REGION),
    "vcpu_hour": ("series of CPU machines", _REGION),
    "gb_hour": ("series of CPU machines", _REGION),
    "disk_gib_month": ("type of boot disk", _REGION),
    "cluster_hour": (_REGION,),
    "nat_vm_hour": (_REGION,),
    "nat_most_hour": (_REGION,),
}


def load(own: Path | None, region: str) -> Prices:
    """The list prices, and over them those of the file `own`, in which `region` is known besides Google's list.

    Raises WrongArgument with every problem of the file at once.
    """
    return Prices(*([read(own, region)] if own else []), list_prices())


def read(path: Path, region: str) -> dict[str, Any]:
    """The sections of a price file, as the list prices have them. Raises WrongArgument with every problem."""
    reader = Reader(name=str(path))
    try:
        root = parse(read_text(path, holds=_HOLDS, most_kib=_MOST_KIB))
    except Unreadable as error:
        raise WrongArgument(f"--prices: {path}: {error}") from None
    except NotYaml as error:
        raise WrongArgument(f"--prices: {path}:{error.line}: {error}") from None
    given = reader.known(reader.mapping(root, _HOLDS), SECTIONS)
    regions = tuple(dict.fromkeys([*ZONES, region]))
    sections = {name: _section(reader, value, SECTIONS[name], regions) for name, value in given.items()}
    if reader.problems:
        raise WrongArgument("\n".join(f"--prices: {problem.keys[0]}: {problem.message}" for problem in reader.problems))
    return sections


def _section(reader: Reader, value: Value, levels: tuple[str, ...], regions: tuple[str, ...]) -> dict[str, Any]:
    given = reader.known(reader.mapping(value, "usd, as_of and source, such as {usd: 2.7}"), ("usd", "as_of", "source"))
    section = {key: reader.parsed(given[key], _HEAD[key]) for key in _HEAD if key in given}
    if "usd" in given:
        section["usd"] = _table(reader, given["usd"], levels, regions)
    elif value.pairs is not None:
        reader.complain(value, "has no usd; add the prices in USD")
    return section


def _table(reader: Reader, value: Value, levels: tuple[str, ...], regions: tuple[str, ...]) -> Any:
    """A price, or a mapping of the outermost level to such tables."""
    if value.pairs is None or not levels:
        return reader.parsed(value, _price)
    what, *inner = levels
    choices = regions if what == _REGION else _CHOICES[what]
    table = {}
    for key, below in reader.mapping(value, f"a price for each {what}").items():
        if key in choices:
            table[key] = _table(reader, below, tuple(inner), regions)
        else:
            reader.complain(below, f"is no {what}{meant(key, choices)}")
    return table


def _price(text: str) -> Decimal:
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,12})?", text):
        return Decimal(text)
    raise ValueError("is not a price; write a number of USD such as 2.7, without a currency")


def _day(text: str) -> str:
    try:
        return datetime.strptime(text, "%Y-%m-%d").date().isoformat()
    except ValueError:
        raise ValueError("is not a day; write one such as 2026-11-01") from None


def _line(text: str) -> str:
    if text.isprintable():
        return text
    raise ValueError("has a character that cannot be printed, such as a tab or the end of a line; remove it")


_HEAD: dict[str, Callable[[str], object]] = {"as_of": _day, "source": _line}
