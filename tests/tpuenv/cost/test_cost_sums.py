"""Whatever the fleet and the prices: the parts add up, more never costs less, and what is unknown is never lost."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from environment import Environment
from environment.list_prices import Prices
from tests.examples import examples
from tests.fleets import with_fleet
from tpuenv.cost import estimate
from tpuenv.cost.amount import Amount, Cost
from tpuenv.cost.prices import CAPACITIES
from tpuenv.cost.report import Report, Row, report

TYPES = {"v6e-16": "ct6e", "v5litepod-8": "ct5lp", "v5p-128": "ct5p"}
# Fractions of a cent that floats would not add up.
USD = st.decimals(min_value=0, max_value=100, places=5)


@st.composite
def fleets(draw: st.DrawFn) -> dict[str, Any]:
    capacity = st.sampled_from(["on-demand", "spot", "flex-start", "queued"])
    group = st.fixed_dictionaries(
        {"type": st.sampled_from([*TYPES]), "slices": st.integers(1, 5), "capacity": capacity},
    )
    groups = draw(st.dictionaries(st.sampled_from("abc"), group, min_size=1))
    shares = draw(st.dictionaries(st.sampled_from(["red", "green", "blue"]), st.integers(1, 9), min_size=1))
    vm = st.fixed_dictionaries(
        {
            "type": st.sampled_from([*TYPES]),
            "team": st.sampled_from([*shares]),
            "capacity": st.sampled_from(["on-demand", "spot", "reservation", "queued"]),
        }
    )
    fleet = {"tpu_pools": groups, "teams": {name: {"share": share} for name, share in shares.items()}}
    vms = draw(st.dictionaries(st.sampled_from(["lab", "night"]), vm))
    return {**fleet, "tpu_vms": vms} if vms else fleet


@st.composite
def prices(draw: st.DrawFn) -> Prices:
    """Prices of some of the chips and of some of the rest."""
    a_chip = st.fixed_dictionaries({}, optional=dict.fromkeys(CAPACITIES, USD))
    chips = draw(st.fixed_dictionaries({}, optional=dict.fromkeys(TYPES.values(), a_chip)))
    rest: dict[str, st.SearchStrategy[Any]] = {
        "vcpu_hour": st.fixed_dictionaries({"n2": USD}),
        "gb_hour": st.fixed_dictionaries({"n2": USD}),
        "disk_gib_month": st.fixed_dictionaries({}, optional={"pd-balanced": USD, "hyperdisk-balanced": USD}),
        "cluster_hour": USD,
        "nat_vm_hour": USD,
        "nat_most_hour": USD,
    }
    sections = {"chip_hour": chips, **draw(st.fixed_dictionaries({}, optional=rest))}
    return Prices({section: {"usd": usd} for section, usd in sections.items()})


def environment_of(fleet: dict[str, Any]) -> Environment:
    return with_fleet(yaml.safe_dump(fleet))


def parts(rows: tuple[Row, ...]) -> Cost:
    return estimate.total(row.cost for row in rows)


def equal(one: Cost, other: Cost) -> bool:
    """To a billionth of a cent: a month of a disk divides by 730."""
    pairs = ((one.idle, other.idle), (one.busy, other.busy))
    return all(a.unknown == b.unknown and abs(a.usd - b.usd) < Decimal("1e-11") for a, b in pairs)


def no_more(one: Amount, other: Amount) -> bool:
    return one.usd <= other.usd and all(other.unknown.get(name, 0) >= count for name, count in one.unknown.items())


def added_up(result: Report) -> None:
    slices = (*result.groups, *result.tpu_vms)
    assert equal(parts(slices), parts(result.modes))
    assert equal(parts(slices), parts(result.teams))
    assert equal(parts(slices) + parts(result.rest), result.total)
    assert equal(result.saved + result.kept, result.total)


@settings(max_examples=examples(40))
@given(fleets(), prices())
def test_groups_modes_teams_and_the_rest_add_up_and_the_busy_cost_is_never_the_smaller(
    fleet: dict[str, Any], known: Prices
) -> None:
    result = report(environment_of(fleet), known)
    added_up(result)
    for row in (*result.groups, *result.tpu_vms, *result.teams, *result.rest):
        assert no_more(row.cost.idle, row.cost.busy), row


@settings(max_examples=examples(40))
@given(fleets(), prices(), st.data())
def test_one_more_slice_never_costs_less(fleet: dict[str, Any], known: Prices, data: st.DataObject) -> None:
    before = report(environment_of(fleet), known).total
    fleet["tpu_pools"][data.draw(st.sampled_from(sorted(fleet["tpu_pools"])))]["slices"] += 1
    after = report(environment_of(fleet), known).total
    assert no_more(before.idle, after.idle)
    assert no_more(before.busy, after.busy)


@settings(max_examples=examples(40))
@given(fleets(), prices())
def test_a_total_names_exactly_what_no_price_is_known_of(fleet: dict[str, Any], known: Prices) -> None:
    result = report(environment_of(fleet), known)
    unpriced = {row.name for row in result.groups if row.cost.busy.unknown}
    for row in result.groups:
        group = fleet["tpu_pools"][row.name]
        capacity = "flex-start" if group["capacity"] == "queued" else group["capacity"]
        assert (row.name in unpriced) == (known.usd("chip_hour", TYPES[group["type"]], capacity, "us-east5") is None)
        assert set(row.cost.busy.unknown) <= set(result.total.busy.unknown)
    assert bool(result.total.busy.unknown) == any(
        row.cost.busy.unknown for row in (*result.groups, *result.tpu_vms, *result.rest)
    )
