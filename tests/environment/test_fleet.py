"""What the settings offer: pool groups, teams, and warnings about fleets that may not come to be."""

from __future__ import annotations

import pytest

from environment.cpu_machine_types import SERIES, UnknownCpuMachineType, cpu_machine_type, system_machine_type
from environment.node_capacity import node_capacity
from tests.fleets import with_fleet
from tests.loading import loaded


def test_the_default_is_one_group_of_two_slices_and_one_team() -> None:
    environment = loaded()
    (group,), (team,) = environment.groups, environment.teams
    assert (group.name, group.zone, group.node_pools) == ("tpu", "us-east5-b", ("tpu-0", "tpu-1"))
    assert (group.slice.tpu_type, group.hosts, group.chips) == ("v6e-16", 8, 32)
    assert (team.name, team.share) == ("tpu-training", 1)


def test_another_tpu_type_changes_the_group_and_nothing_else() -> None:
    default, other = loaded(), loaded(TPU_TYPE="v6e-32")
    assert (other.groups[0].slice.topology, other.groups[0].hosts, other.groups[0].chips) == ("4x8", 16, 64)
    assert other.teams == default.teams and vars(other.names) == vars(default.names)


def test_a_slice_keeps_its_name_when_more_are_added() -> None:
    (few,), (many,) = loaded(NUM_TPU_POOLS="2").groups, loaded(NUM_TPU_POOLS="12").groups
    assert many.node_pools[:2] == few.node_pools
    assert len(set(many.node_pools)) == 12


def test_a_zone_where_google_lists_none_of_the_tpus_is_a_warning() -> None:
    (warning,) = loaded(ZONE="us-east5-c").warnings
    assert warning.startswith("ZONE: Google's list of November 2026 has no v6e in 'us-east5-c', but in us-central1-b")
    assert loaded(ZONE="us-east5-a").warnings == ()


def test_a_cluster_larger_than_the_usual_quota_is_a_warning() -> None:
    large = {"NUM_TPU_POOLS": "1249", "PODS_CIDR": "10.16.0.0/12", "SUBNET_CIDR": "10.64.0.0/18"}
    (warning,) = loaded(**large).warnings
    assert warning.startswith("NUM_TPU_POOLS: 5002 nodes are more than the 5000")
    assert loaded(**{**large, "NUM_TPU_POOLS": "1248"}).warnings == ()


def test_a_cpu_pool_with_no_room_for_jobs_is_a_warning() -> None:
    (warning,) = loaded(CPU_MACHINE_TYPE="e2-standard-2", CPU_MAX_NODES="1").warnings
    assert warning.startswith("CPU_MACHINE_TYPE: 1 x e2-standard-2 has no room")
    assert len(loaded(CPU_MACHINE_TYPE="n1-highcpu-8", CPU_MAX_NODES="1").warnings) == 1, "cores, but no memory"
    assert len(loaded(CPU_MACHINE_TYPE="e2-highmem-2", CPU_MAX_NODES="1").warnings) == 1, "memory, but no cores"
    assert loaded(CPU_MACHINE_TYPE="e2-standard-4", CPU_MAX_NODES="1").warnings == ()


@pytest.mark.parametrize("series", SERIES)
def test_a_system_node_is_a_small_one_of_the_cpu_pool_s_series(series: str) -> None:
    machine = system_machine_type(f"{series}-standard-8")
    assert (machine.series, machine.boot_disk) == (series, cpu_machine_type(f"{series}-standard-8").boot_disk)
    assert machine.vcpu in (2, 4) and machine.memory_gb >= 7
    # Kueue and JobSet may be on one node, while the other is upgraded.
    node = node_capacity(vcpu=machine.vcpu, memory_gb=machine.memory_gb)
    assert node.cpu >= 1 and node.memory_gib >= 2


@pytest.mark.parametrize(
    ("name", "vcpu", "memory_gb", "boot_disk"),
    [
        ("n2-standard-8", 8, 32, "pd-balanced"),
        ("e2-highcpu-32", 32, 32, "pd-balanced"),
        ("n1-standard-4", 4, 15, "pd-balanced"),
        ("n1-highmem-2", 2, 13, "pd-balanced"),
        ("n1-highcpu-16", 16, 14, "pd-balanced"),
        ("n2-highmem-96", 96, 768, "pd-balanced"),
        ("n2d-standard-224", 224, 896, "pd-balanced"),
        ("c2-standard-60", 60, 240, "pd-balanced"),
        ("c3-highcpu-22", 22, 44, "pd-balanced"),
        ("c3d-highmem-30", 30, 240, "pd-balanced"),
        ("t2d-standard-60", 60, 240, "pd-balanced"),
        ("c4-standard-2", 2, 7, "hyperdisk-balanced"),
        ("c4-highmem-192", 192, 1488, "hyperdisk-balanced"),
        ("n4-highcpu-80", 80, 160, "hyperdisk-balanced"),
    ],
)
def test_cpu_machine_types_have_what_google_says(name: str, vcpu: int, memory_gb: int, boot_disk: str) -> None:
    machine = cpu_machine_type(name)
    assert (machine.name, machine.vcpu, machine.memory_gb, machine.boot_disk) == (name, vcpu, memory_gb, boot_disk)


# Google's machine families pages, August 2026.
SIZES = {
    "e2-standard": (2, 4, 8, 16, 32),
    "e2-highmem": (2, 4, 8, 16),
    "e2-highcpu": (2, 4, 8, 16, 32),
    "n1-standard": (2, 4, 8, 16, 32, 64, 96),
    "n1-highmem": (2, 4, 8, 16, 32, 64, 96),
    "n1-highcpu": (2, 4, 8, 16, 32, 64, 96),
    "n2-standard": (2, 4, 8, 16, 32, 48, 64, 80, 96, 128),
    "n2-highmem": (2, 4, 8, 16, 32, 48, 64, 80, 96),
    "n2-highcpu": (2, 4, 8, 16, 32, 48, 64, 80, 96),
    "n2d-standard": (2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224),
    "n2d-highmem": (2, 4, 8, 16, 32, 48, 64, 80, 96),
    "n2d-highcpu": (2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224),
    "n4-standard": (2, 4, 8, 16, 32, 48, 64, 80),
    "n4-highmem": (2, 4, 8, 16, 32, 48, 64, 80),
    "n4-highcpu": (2, 4, 8, 16, 32, 48, 64, 80),
    "c2-standard": (4, 8, 16, 30, 60),
    "c2d-standard": (2, 4, 8, 16, 32, 56, 112),
    "c2d-highmem": (2, 4, 8, 16, 32, 56, 112),
    "c2d-highcpu": (2, 4, 8, 16, 32, 56, 112),
    "c3-standard": (4, 8, 22, 44, 88, 176),
    "c3-highmem": (4, 8, 22, 44, 88, 176),
    "c3-highcpu": (4, 8, 22, 44, 88, 176),
    "c3d-standard": (4, 8, 16, 30, 60, 90, 180, 360),
    "c3d-highmem": (4, 8, 16, 30, 60, 90, 180, 360),
    "c3d-highcpu": (4, 8, 16),
    "c4-standard": (2, 4, 8, 16, 24, 32, 48, 96, 144, 192, 288),
    "c4-highmem": (2, 4, 8, 16, 24, 32, 48, 96, 144, 192, 288),
    "c4-highcpu": (2, 4, 8, 16, 24, 32, 48, 96, 144, 192, 288),
    "t2d-standard": (2, 4, 8, 16, 32, 48, 60),
}


def exists(name: str) -> bool:
    try:
        cpu_machine_type(name)
    except UnknownCpuMachineType:
        return False
    return True


@pytest.mark.parametrize("kind", SIZES)
def test_a_kind_of_cpu_machine_type_comes_in_its_sizes_and_no_others(kind: str) -> None:
    assert tuple(vcpu for vcpu in range(400) if exists(f"{kind}-{vcpu}")) == SIZES[kind]


@pytest.mark.parametrize("name", ["", "n2", "n2-standard-", "n2-standard-08", "n2-standard-8 ", "N2-standard-8"])
def test_a_machine_type_that_is_not_written_as_google_writes_it_is_unknown(name: str) -> None:
    with pytest.raises(UnknownCpuMachineType):
        cpu_machine_type(name)


@pytest.mark.parametrize(
    ("capacity", "mode", "advice"),
    [
        ("flex-start", "standard", "use queued, for which Kueue waits before it starts a job, or look at"),
        ("flex-start", "autopilot", "(waitForPodsReady); look at"),
        ("queued", "standard", None),
    ],
)
def test_the_week_of_a_flex_start_group_is_said_to_hold_for_other_slices(
    capacity: str, mode: str, advice: str | None
) -> None:
    groups = f"  burst: {{type: v5litepod-16, slices: 1, capacity: {capacity}, zone: us-east5-a}}\n"
    alone = "tpu_pools:\n" + groups + "teams: {research: {}}\n"
    beside = alone.replace(groups, groups + "  dev: {type: v6e-16, slices: 1}\n")
    week = [warning for warning in with_fleet(beside, CLUSTER_MODE=mode).warnings if "waitForPodsReady" in warning]
    assert bool(week) is (advice is not None)
    for warning in week:
        assert warning.startswith("fleet.yaml:2: tpu_pools.burst.capacity: ") and advice and advice in warning
        assert "168 hours before all its pods run, on dev too" in warning
    assert not any("waitForPodsReady" in warning for warning in with_fleet(alone, CLUSTER_MODE=mode).warnings)
