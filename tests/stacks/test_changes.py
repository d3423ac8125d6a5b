"""Which node pools a change leaves alone: what is said of another group, and of other slices, does not matter."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from environment import Environment
from stacks.tpu_node_pools import TpuNodePools
from tests.change_cases import ACTIONS, NAMES, Described, change
from tests.examples import examples
from tests.synthesis import STACKS, read_stack

# What another value of makes another slice, and the value of a group that does not say it.
MAKES_ANOTHER = {"type": "", "zone": "us-east5-b", "capacity": "on-demand"}

GROUPS = st.fixed_dictionaries(
    {"type": st.sampled_from(["v6e-4", "v6e-16", "v5p-32"]), "slices": st.integers(1, 3)},
    optional={
        "zone": st.sampled_from(["us-east5-a", "us-east5-b"]),
        "capacity": st.sampled_from(["spot", "flex-start", "queued"]),
    },
)
FLEETS = st.dictionaries(st.sampled_from(["train", "dev", "lab"]), GROUPS, min_size=1)

POOL = "google_container_node_pool"


def node_pools(wanted: Environment) -> dict[str, Any]:
    """The resources of the stack, by type and id."""
    from cdktf import App  # not before stacks, which makes the bindings fast to import

    with tempfile.TemporaryDirectory() as folder:
        app = App(outdir=folder)
        TpuNodePools(app, "tpu-node-pools", environment=wanted)
        app.synth()
        return dict(read_stack(Path(folder), "tpu-node-pools")["resource"])


def of_fleet(groups: dict[str, Any]) -> dict[str, Any]:
    return node_pools(Described(fleet={"tpu_pools": groups, "teams": {"research": {}}}).environment())


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FLEETS, FLEETS)
def test_a_slice_is_left_alone_if_its_group_stays_what_it_is(before: dict[str, Any], after: dict[str, Any]) -> None:
    old, new = of_fleet(before), of_fleet(after)
    for name in before.keys() & after.keys():
        same = all(before[name].get(key, value) == after[name].get(key, value) for key, value in MAKES_ANOTHER.items())
        shape = f"{name}-shape"
        for index in range(min(before[name]["slices"], after[name]["slices"])):
            pools = [stack[POOL][f"{name}-{index}"] for stack in (old, new)]
            assert (pools[0] == pools[1]) == same
            assert pools[0]["lifecycle"]["replace_triggered_by"] == [f"terraform_data.{shape}"]
        if same:
            assert old["terraform_data"][shape] == new["terraform_data"][shape]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_a_change_says_only_what_can_happen(name: str) -> None:
    meant = change(name)
    assert meant.before.environment() and meant.after.environment()
    assert meant.before.key != meant.after.key
    assert list(meant.plan) == [stack for stack in STACKS if stack in meant.plan], "in the order of the stacks"
    assert {action for of_stack in meant.plan.values() for action in of_stack.values()} <= set(ACTIONS)
    assert meant.refused is None or meant.refused.stack in STACKS


def test_machines_that_google_takes_back_say_when() -> None:
    """GKE reports its own default of seven days, which would replace a pool that does not say it."""
    groups = {
        "flex": {"type": "v6e-16", "slices": 1, "capacity": "flex-start"},
        "queued": {"type": "v6e-16", "slices": 1, "capacity": "queued", "max_run_hours": 24},
        "plain": {"type": "v6e-16", "slices": 1},
    }
    durations = {name: pool["node_config"].get("max_run_duration") for name, pool in of_fleet(groups)[POOL].items()}
    assert durations == {"flex-0": "604800s", "queued-0": "86400s", "plain-0": None}


def test_single_hosts_of_a_reservation_need_no_other_one_to_be_upgraded() -> None:
    reserved = {"slices": 1, "capacity": "reservation", "reservation": "mine"}
    groups = {
        "one": {"type": "v6e-4", **reserved},
        "many": {"type": "v6e-16", **reserved},
        "plain": {"type": "v6e-4", "slices": 1},
    }
    settings_of_upgrades = {name: pool.get("upgrade_settings") for name, pool in of_fleet(groups)[POOL].items()}
    assert settings_of_upgrades == {"one-0": {"max_surge": 0, "max_unavailable": 1}, "many-0": None, "plain-0": None}


@pytest.mark.parametrize("type_", ["v6e-4", "v6e-16", "tpu7x-2x2x2"])
def test_labels_that_google_adds_are_left_alone(type_: str) -> None:
    (pool,) = node_pools(Described(settings={"TPU_TYPE": type_, "NUM_TPU_POOLS": "1"}).environment())[POOL].values()
    assert "node_config[0].labels" in pool["lifecycle"]["ignore_changes"]
    assert json.dumps(pool["node_config"]["labels"]) == '{"tpuenv/pool-group": "tpu"}'
