"""Every change of tests/changes, with the real Terraform and jobs running: exactly that happens, and no more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rehearsal.cloud import Object
from rehearsal.google.gke import POOL
from tests.change_cases import NAMES, Change, Described, change
from tests.rehearsal import failures
from tests.rehearsal.changed import Deployed, Stopped
from tests.rehearsal.deployed import world_of
from tests.synthesis import STACKS

# Other stacks read what is in these, or are in the cluster that they make.
BASES = STACKS[: STACKS.index("platform") + 1]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH"),
]


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("changes")
    with world_of(Described().environment(), folder / "world") as world:
        yield Deployed(world=world, folder=folder)


@pytest.mark.parametrize("name", [name for name in NAMES if not change(name).refused])
def test_a_deploy_does_what_the_file_says_and_stops_no_other_slice(name: str, deployed: Deployed) -> None:
    meant = change(name)
    deployed.begin(meant.before)
    pools, running = deployed.pools, deployed.running
    assert running
    assert deployed.deploy(meant.after) == meant.plan
    reached = [stack for stack in deployed.stacks(meant.after) if may_plan_otherwise(stack, meant.plan.keys())]
    with ThreadPoolExecutor() as threads:
        again = [*threads.map(lambda stack: deployed.plan(meant.after, stack), reached)]
    assert again == [{}] * len(reached), "a second deploy has nothing to do"
    other_slices_stay(deployed, meant, pools, running)


def may_plan_otherwise(stack: str, changed: Collection[str]) -> bool:
    """Whether it is one of the stacks that a deploy changed, or comes after a changed one that others stand on."""
    return stack in changed or any(STACKS.index(stack) > STACKS.index(other) for other in changed if other in BASES)


def other_slices_stay(
    deployed: Deployed, meant: Change, pools: Mapping[str, Object], running: Mapping[str, Mapping[str, Any]]
) -> None:
    """Untouched by Google, and what runs on them was never stopped and started again."""
    for name in pools.keys() - meant.touched_pools:
        assert deployed.pools.get(name) == pools[name], name
    for name, workload in running.items():
        assigned = workload["status"]["admission"]["podSetAssignments"]
        flavors = {flavor for pod_set in assigned for flavor in pod_set["flavors"].values()}
        if workload["metadata"]["namespace"] not in meant.stopped_teams and not flavors & meant.stopped_groups:
            assert deployed.running.get(name) == workload, name


@pytest.mark.parametrize("name", [name for name in NAMES if change(name).refused])
def test_a_change_that_is_refused_changes_nothing_that_was_there(name: str, deployed: Deployed) -> None:
    meant = change(name)
    assert meant.refused is not None
    deployed.begin(meant.before)
    before = deployed.things
    with pytest.raises(Stopped) as stopped:
        deployed.deploy(meant.after)
    assert stopped.value.stack == meant.refused.stack
    assert meant.refused.words in stopped.value.words
    assert stopped.value.done == meant.plan
    created = sum(list(of_stack.values()).count("create") for of_stack in meant.plan.values())
    assert before.items() <= deployed.things.items()
    assert len(deployed.things) == len(before) + created


def test_slices_that_were_there_before_their_shape_was_in_the_state_are_not_replaced(deployed: Deployed) -> None:
    """As after an upgrade of this code, and after `tpuenv recover` imported the pools."""
    without = Described(settings={"NUM_TPU_POOLS": "2"})
    path = deployed.output(without) / "stacks" / "tpu-node-pools" / "cdk.tf.json"
    stack = json.loads(path.read_text(encoding="utf-8"))
    del stack["resource"]["terraform_data"]["tpu-shape"]
    for pool in stack["resource"]["google_container_node_pool"].values():
        del pool["lifecycle"]["replace_triggered_by"]
    path.write_text(json.dumps(stack), encoding="utf-8")
    deployed.begin(without)
    pools = deployed.pools
    assert deployed.deploy(Described()) == {"tpu-node-pools": {"terraform_data.tpu-shape": "create"}}
    assert deployed.pools == pools


def test_a_deploy_that_stopped_between_two_slices_replaces_the_other_the_next_time(deployed: Deployed) -> None:
    larger = Described(settings={"TPU_TYPE": "v6e-32"})
    deployed.begin(Described())
    failures.turn_on(deployed.world.cloud, failures.REFUSE, after=1, types=POOL)
    with pytest.raises(Stopped, match="does not have permission"):
        deployed.deploy(larger)
    failures.turn_off(deployed.world.cloud)
    assert len({"tpu-0", "tpu-1"} & deployed.pools.keys()) == 1
    deployed.deploy(larger)
    assert [deployed.pools[name].attributes["node_count"] for name in ("tpu-0", "tpu-1")] == [8, 8]
    assert [deployed.plan(larger, stack) for stack in STACKS] == [{}] * len(STACKS)
