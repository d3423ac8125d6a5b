"""Rules of TPU node pools, and the shapes they go by."""

from __future__ import annotations

import pytest

from environment.tpu import UnknownTpuType, slice_for
from environment.tpu_catalogue import MACHINE_TYPES
from rehearsal.google.tpu import SHAPES, Shape
from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.fake import FakeCloud

TPU = "google_container_node_pool.tpu-0"
POLICY = {"type": "HIGH_THROUGHPUT", "accelerator_topology": "2x2x2"}
PLACED = [{"type": "COMPACT", "tpu_topology": "4x4"}]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"node_count": 3}, "Node count 3 is not a valid size of TPU pod slice with topology 4x4; it must be 4"),
        (
            {"node_count": None, "autoscaling": [{"total_max_node_count": 4}]},
            "Maximum node count 0 is not a valid size of TPU pod slice with topology 4x4",
        ),
        (
            {"node_count": None, "autoscaling": [{"min_node_count": 1, "max_node_count": 4}]},
            "Minimum node count 1 is not a valid size",
        ),
        (
            {"node_count": None, "initial_node_count": 2, "autoscaling": [{"min_node_count": 0, "max_node_count": 4}]},
            "Initial node count 2 is not a valid size",
        ),
        ({"placement_policy__tpu_topology": "2x2"}, "TPU topology can't be specified with single-host TPU slice pool"),
        ({"placement_policy__tpu_topology": "4x6"}, "Invalid TPU topology 4x6 for machine type ct6e-standard-4t"),
        ({"placement_policy__tpu_topology": "4x4x4"}, "Invalid TPU topology 4x4x4"),
        ({"placement_policy__type": "SPREAD"}, "TPU topology requires a placement policy of type COMPACT"),
        (
            {"node_config__machine_type": "ct6e-standard-8t"},
            "Invalid TPU topology 4x4 for machine type ct6e-standard-8t",
        ),
        ({"node_config__machine_type": "ct6e-standard-2t"}, "Machine type with name 'ct6e-standard-2t' does not exist"),
        ({"node_config__disk_type": "pd-balanced"}, "pd-balanced cannot be used as a boot disk"),
        ({"node_locations": ["us-east5-a", "us-east5-b"]}, "must be in exactly one zone; node_locations has 2"),
        ({"node_locations": None}, "must be in exactly one zone; node_locations has 0"),
        ({"upgrade_settings": [{"strategy": "BLUE_GREEN"}]}, "Blue-green upgrades are not supported"),
        (
            {"node_config__reservation_affinity": [{"consume_reservation_type": "SPECIFIC_RESERVATION"}]},
            "needs the key compute.googleapis.com/reservation-name",
        ),
        (
            {
                "node_config__spot": True,
                "node_config__reservation_affinity": [
                    {"consume_reservation_type": "SPECIFIC_RESERVATION", "key": "k", "values": ["v"]}
                ],
            },
            "Spot VMs cannot consume a reservation",
        ),
        ({"node_config__flex_start": True}, "Flex start requires autoscaling with a minimum of 0 nodes"),
        ({"queued_provisioning": [{"enabled": True}]}, "Queued provisioning requires autoscaling with a minimum of 0"),
    ],
)
def test_a_slice_that_gke_refuses(deployed: FakeCloud, changes: dict[str, object], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        deployed.make("google_container_node_pool.two", like=TPU, **({"name": "two"} | changes))


FLEX = {
    "name": "flex",
    "node_count": None,
    "autoscaling": [{"min_node_count": 0, "max_node_count": 4}],
    "management": [{"auto_repair": False}],
    "node_config__flex_start": True,
    "node_config__reservation_affinity": [{"consume_reservation_type": "NO_RESERVATION"}],
}


def test_a_flex_start_slice_that_gke_takes(deployed: FakeCloud) -> None:
    state = deployed.make("google_container_node_pool.flex", like=TPU, **FLEX).state
    assert state is not None
    assert state["node_count"] == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"management": [{"auto_repair": True}]}, "Flex start requires node auto-repair to be disabled"),
        ({"node_config__spot": True}, "Flex start cannot be used with Spot VMs"),
        (
            {"node_config__reservation_affinity": [{"consume_reservation_type": "ANY_RESERVATION"}]},
            "Flex start requires reservation affinity NO_RESERVATION",
        ),
        (
            {
                "node_config__machine_type": "ct4p-hightpu-4t",
                "node_config__disk_type": "pd-balanced",
                "placement_policy": [{"type": "COMPACT", "tpu_topology": "2x2x4"}],
            },
            "Flex start is not supported for this TPU generation",
        ),
    ],
)
def test_a_flex_start_slice_that_gke_refuses(deployed: FakeCloud, changes: dict[str, object], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        deployed.make("google_container_node_pool.flex", like=TPU, **(FLEX | changes))


def test_a_single_host_pool_has_no_topology_and_any_size(deployed: FakeCloud) -> None:
    for count in (1, 3):
        changes = {"placement_policy": None, "node_config__machine_type": "ct6e-standard-1t", "node_count": count}
        deployed.make(f"google_container_node_pool.one-{count}", like=TPU, name=f"one-{count}", **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"node_count": 8, "placement_policy__tpu_topology": "4x8"},
            "Node count 8 is not a valid size of TPU pod slice with topology 4x4; it must be 4",
        ),
        (
            {
                "node_config__machine_type": "ct5p-hightpu-4t",
                "node_config__disk_type": "pd-balanced",
                "placement_policy__tpu_topology": "2x2x4",
            },
            "Machine type of a TPU node pool cannot be updated from ct6e-standard-4t to ct5p-hightpu-4t",
        ),
    ],
)
def test_gke_refuses_to_make_another_slice_of_one_that_exists(
    deployed: FakeCloud, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(Refusal, match=words):
        deployed.change(TPU, **changes)


def test_a_topology_that_is_updated_never_reaches_gke(deployed: FakeCloud) -> None:
    cube = {
        "node_config__machine_type": "ct5p-hightpu-4t",
        "node_config__disk_type": "pd-balanced",
        "placement_policy__tpu_topology": "4x4x8",
        "node_count": 32,
    }
    deployed.make("google_container_node_pool.cube", like=TPU, name="cube", **cube)
    state = deployed.change("google_container_node_pool.cube", placement_policy__tpu_topology="4x8x4")
    assert state["placement_policy"][0]["tpu_topology"] == "4x4x8"


def test_an_autoscaled_slice_that_is_away_may_come_back_for_good(deployed: FakeCloud) -> None:
    autoscaled = {"node_count": None, "autoscaling": [{"min_node_count": 0, "max_node_count": 4}]}
    deployed.make("google_container_node_pool.two", like=TPU, name="two", **autoscaled)
    state = deployed.change("google_container_node_pool.two", autoscaling=None, node_count=4)
    assert state["node_count"] == 4


def test_ironwood_takes_a_workload_policy_for_its_topology(deployed: FakeCloud) -> None:
    ironwood = {
        "name": "ironwood",
        "node_count": 2,
        "node_config__machine_type": "tpu7x-standard-4t",
        "placement_policy": [{"type": "", "tpu_topology": "2x2x2", "policy_name": "tpu-ironwood"}],
    }
    address, policy = "google_container_node_pool.ironwood", "google_compute_resource_policy.p"
    with pytest.raises(
        Refusal, match=r"resource 'projects/my-project/regions/us-east5/resourcePolicies/tpu-ironwood' was not"
    ):
        deployed.make(address, like=TPU, **ironwood)
    wrong = [POLICY | {"accelerator_topology": "2x2x4"}]
    deployed.make(policy, name="tpu-ironwood", region="us-east5", workload_policy=wrong)
    with pytest.raises(Refusal, match="is not a HIGH_THROUGHPUT policy for topology 2x2x2"):
        deployed.make(address, like=TPU, **ironwood)
    deployed.change(policy, workload_policy=[POLICY])
    deployed.make(address, like=TPU, **ironwood)
    with pytest.raises(Refusal, match=r"is already being used by '.*/nodePools/ironwood'"):
        deployed.destroy(policy)
    with pytest.raises(Refusal, match="A workload policy of type HIGH_THROUGHPUT is required for topology 2x2x2"):
        deployed.make("google_container_node_pool.x", like=address, name="x", placement_policy__policy_name=None)
    with pytest.raises(Refusal, match=r"with placement policy is not supported. Use workload policy instead"):
        deployed.make("google_container_node_pool.x", like=address, name="x", placement_policy__type="COMPACT")


def test_gke_adds_labels_of_its_own_and_says_when_machines_go_back(deployed: FakeCloud) -> None:
    deployed.make("google_container_node_pool.flex", like=TPU, **FLEX)
    pool = deployed.read("google_container_node_pool.flex")
    assert pool is not None
    assert pool["node_config"][0]["max_run_duration"] == "604800s"
    assert pool["node_config"][0]["labels"].keys() > {"tpuenv/pool-group"}


def test_gke_taints_tpu_hosts_by_itself(deployed: FakeCloud) -> None:
    state = deployed.resources[TPU].state
    assert state is not None
    taint = {"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}
    assert state["node_config"][0]["effective_taints"] == [taint]


def test_the_machines_are_those_of_the_catalogue() -> None:
    ours = {name: (shape.accelerator, shape.chips_per_host, shape.vcpu) for name, shape in SHAPES.items()}
    theirs = {machine.name: (machine.accelerator, machine.chips_per_host, machine.vcpu) for machine in MACHINE_TYPES}
    assert {name: ours[name] for name in theirs} == theirs


def test_the_boot_disks_are_those_of_the_catalogue() -> None:
    for machine in MACHINE_TYPES:
        assert set(machine.boot_disks) == set(SHAPES[machine.name].boot_disks), machine.name


@pytest.mark.parametrize("machine", [machine.name for machine in MACHINE_TYPES])
def test_the_topologies_are_those_of_the_catalogue(machine: str) -> None:
    """Every topology up to a side of 20 that either side knows; the catalogue may know fewer of the large ones."""
    shape = SHAPES[machine]
    for topology in _topologies(shape):
        try:
            slice_ = slice_for(f"{machine}-{topology}")
        except UnknownTpuType:
            continue
        assert slice_.multi_host == shape.allows(topology), topology
        assert slice_.hosts == shape.hosts(topology), topology
    known = [topology for topology in shape.multi_host if _known(machine, topology)]
    assert known == shape.multi_host, "a shape that the catalogue does not know"


def _known(machine: str, topology: str) -> bool:
    try:
        slice_for(f"{machine}-{topology}")
    except UnknownTpuType:
        return False
    return True


def _topologies(shape: Shape) -> list[str]:
    sides = [1, 2, 4, 8, 12, 16, 20]
    if shape.single_host.count("x") == 1:
        return [f"{a}x{b}" for a in sides for b in sides if a <= b]
    return [f"{a}x{b}x{c}" for a in sides for b in sides for c in sides if a <= b <= c]
