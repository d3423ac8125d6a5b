"""The cost of what a plan has: the same as that of the settings it is from, and what a change makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from environment import CapacityMode
from environment.list_prices import Prices
from tests.generate.docs_tables import SNAPSHOTS
from tests.plans import changed, plan
from tests.synthesis import CASES, Synthesis
from tpuenv.cost import estimate, paid
from tpuenv.cost.prices import load
from tpuenv.cost.report_text import difference

POOL = {
    "name": "dev-0",
    "location": "us-east5",
    "node_locations": ["us-east5-b"],
    "node_count": 4,
    "initial_node_count": 4,
    "autoscaling": [],
    "node_config": [{"machine_type": "ct6e-standard-4t", "disk_type": "pd-balanced", "disk_size_gb": 100}],
}


@pytest.fixture
def prices() -> Prices:
    return load(None, "us-east5")


def pool(count: int = 4, **config: Any) -> dict[str, Any]:
    return {**POOL, "node_count": count, "node_config": [{**POOL["node_config"][0], **config}]}  # type: ignore[index]


def resource(type_: str, before: Any, after: Any) -> dict[str, Any]:
    return changed(before, after, type=type_, mode="managed")


def printed(prices: Prices, *changes: tuple[Any, Any]) -> list[str]:
    planned = [plan(*(resource("google_container_node_pool", *change) for change in changes))]
    before, after = (estimate.everything(paid.of_plans(planned, side), prices) for side in ("before", "after"))
    return list(difference(before, after, prices.used))


def as_planned(values: dict[str, Any]) -> dict[str, Any]:
    """A synthesized resource as a plan has it: every block is a list."""
    return {key: [as_planned(value)] if isinstance(value, dict) else value for key, value in values.items()}


@pytest.mark.parametrize("case", CASES)
def test_a_plan_of_everything_costs_what_the_settings_cost(case: str, tmp_path: Path) -> None:
    environment = Synthesis(tmp_path).environment(case)
    stacks = []
    for snapshot in SNAPSHOTS.glob(f"*[[]{case}-*.json"):
        by_type = json.loads(snapshot.read_text(encoding="utf-8"))["resource"]
        resources = [(type_, values) for type_, of_type in by_type.items() for values in of_type.values()]
        stacks.append(plan(*(resource(type_, None, as_planned(values)) for type_, values in resources)))
    prices = load(None, environment.settings.region)
    by_plan = estimate.everything(paid.of_plans(stacks, "after"), prices)
    # Terraform creates neither queued TPU VMs nor the nodes of Autopilot.
    by_others = [paid.of_tpu_vm(vm) for vm in environment.tpu_vms if vm.capacity is CapacityMode.QUEUED]
    if environment.settings.autopilot:
        by_others += [paid.of_group(environment, group, group.slices) for group in environment.groups]
    everything = paid.of_environment(environment)
    created = replace(everything, nodes=tuple(nodes for nodes in everything.nodes if nodes not in by_others))
    total = estimate.everything(created, prices)
    for one, other in ((by_plan.idle, total.idle), (by_plan.busy, total.busy)):
        assert one.unknown == other.unknown
        assert round(one.usd, 9) == round(other.usd, 9)
    assert paid.of_plans(stacks, "before") == paid.Paid(nodes=())


def test_one_more_slice_costs_its_chips_and_boot_disks(prices: Prices) -> None:
    assert printed(prices, (pool(), pool()), (None, pool())) == [
        "cost (prices of 2026-02-26 to 2026-07-30): +43.25 USD an hour while jobs use every slice, +43.25 while none "
        "runs;",
        "  of the stacks above at most 43.25 until now, and then 86.51",
    ]


def test_tpu_vms_cost_their_chips_until_they_are_deleted(prices: Prices) -> None:
    vms: list[dict[str, Any]] = [
        {"accelerator_type": "v6e-16", "zone": "us-east5-b"},
        {"accelerator_type": "v6e-8", "zone": "us-east5-b", "scheduling_config": [{"spot": True}]},
        {"accelerator_type": "v6e-1", "zone": "us-east5-b", "scheduling_config": [{"reserved": True}]},
        {"accelerator_type": "v99-1", "zone": "us-east5-b", "scheduling_config": []},
    ]
    planned = paid.of_plans([plan(*(resource("google_tpu_v2_vm", vm, None) for vm in vms))], "before")
    cost = estimate.everything(planned, prices)
    assert cost.idle == cost.busy
    assert float(cost.busy.usd) == 16 * 2.7 + 8 * 1.215
    assert cost.busy.unknown == {"chips of ct6e, reservation": 1, "TPU VMs v99-1": 1}


def test_what_is_not_changed_has_no_cost_line(prices: Prices) -> None:
    assert printed(prices, (pool(), pool())) == []


def test_hosts_that_are_gone_behind_terraform_are_paid_for_again(prices: Prices) -> None:
    assert "+21.63 USD an hour" in printed(prices, (pool(2), pool(4)))[0]


def test_counts_of_nodes_are_those_of_a_zone(prices: Prices) -> None:
    assert "+43.25 USD an hour" in printed(prices, (pool(2), {**pool(3), "node_locations": ["us-east5-a", "b"]}))[0]


def test_cloud_nat_costs_by_the_node_up_to_the_most_of_a_gateway(prices: Prices) -> None:
    gateway = {"region": "us-east5"}

    def usd(nodes: int) -> float:
        planned = plan(
            resource("google_compute_router_nat", None, gateway),
            resource("google_container_node_pool", None, pool(nodes)),
            resource("google_container_node_pool", None, {**pool(100), "location": "us-central1"}),
        )
        return float(estimate.gateways(paid.of_plans([planned], "after"), prices).busy.usd)

    assert [usd(nodes) for nodes in (0, 1, 31, 40, 400)] == [0, 0.0014, 0.0434, 0.044, 0.044]


def test_autoscaling_saves_while_no_job_runs(prices: Prices) -> None:
    scaled = {**pool(0), "node_count": None, "autoscaling": [{"min_node_count": 0, "max_node_count": 4}]}
    assert printed(prices, (pool(), scaled))[0].endswith(
        ": +0.00 USD an hour while jobs use every slice, -43.25 while none runs;"
    )


def test_capacity_counts_by_its_own_price_and_one_without_a_price_is_named(prices: Prices) -> None:
    assert "-23.76 USD an hour" in printed(prices, (pool(), pool(spot=True)))[0]
    reserved = {"consume_reservation_type": "SPECIFIC_RESERVATION"}
    assert printed(prices, (pool(spot=True), pool(reservation_affinity=[reserved])))[1:] == [
        "  of the stacks above at most 19.49 until now, and then 0.05+ (+: more, at unknown prices)",
        "  no known price: +16 chips of ct6e, reservation",
    ]
    none = {"consume_reservation_type": "NO_RESERVATION"}
    flexible = printed(prices, (None, pool(flex_start=True, reservation_affinity=[none])))
    assert flexible[-1].endswith("+16 chips of ct6e, flex-start")


def test_a_part_without_a_price_that_stays_as_it_is_does_not_blur_the_difference(prices: Prices) -> None:
    unknown = pool(machine_type="tpu7x-standard-4t")
    lines = printed(prices, (unknown, unknown), (None, pool()))
    assert "+43.25 USD an hour" in lines[0]
    assert "no known price" not in "".join(lines)


def test_what_has_no_price_is_named_also_where_it_changes_only_while_no_job_runs(prices: Prices) -> None:
    scaled = {"node_count": None, "autoscaling": [{"min_node_count": 0, "max_node_count": 4}]}
    unknown = pool(machine_type="tpu7x-standard-4t")
    new = (None, pool(machine_type="ct9-nothing-4t"))
    assert printed(prices, (unknown, {**unknown, **scaled}), new)[-1] == (
        "  no known price: +4 ct9-nothing-4t; -16 chips of tpu7x, on-demand"
    )


def test_a_machine_type_that_nobody_knows_has_no_price(prices: Prices) -> None:
    assert printed(prices, (None, pool(machine_type="ct9-nothing-4t")))[-1].endswith("+4 ct9-nothing-4t")
