"""CLUSTER_MODE=autopilot: settings and fleets that it cannot have, and the labels by which pods get their TPUs."""

from __future__ import annotations

import pytest

from environment.fleet.node_selector import node_selector
from tests.fleets import refused_fleet, with_fleet
from tests.loading import loaded, refused

TWO = "tpu_pools:\n  one: {%s, slices: 1}\n  two: {%s, slices: 1}\nteams:\n  research:\n"
OF_SLICE = {
    "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
    "cloud.google.com/gke-tpu-topology": "4x4",
    "topology.kubernetes.io/zone": "us-east5-b",
}
SPECIFIC = {"cloud.google.com/reservation-affinity": "specific", "cloud.google.com/reservation-name": "mine"}


def test_every_setting_that_autopilot_cannot_have_is_reported_at_once() -> None:
    problems = refused(
        CLUSTER_MODE="autopilot",
        CPU_ZONE="us-east5-a",
        CPU_MIN_NODES="2",
        XPK_COMPATIBILITY="true",
    )
    assert [problem.split(": ")[0] for problem in problems] == ["CPU_ZONE", "CPU_MIN_NODES", "XPK_COMPATIBILITY"]
    assert all("CLUSTER_MODE=autopilot" in problem for problem in problems)


def test_another_mode_is_refused_with_those_that_there_are() -> None:
    assert refused(CLUSTER_MODE="Autopilot") == ("CLUSTER_MODE: 'Autopilot' is not one of standard, autopilot",)


@pytest.mark.parametrize(
    ("group", "at", "says"),
    [
        ("type: v6e-16, capacity: queued", "fleet.yaml:2", "'queued' is known for node pools only"),
        ("type: v6e-16, capacity: flex-start, max_run_hours: 24", "fleet.yaml:2", "after 168 hours; remove it"),
        ("type: v6e-16, autoscaled: false", "fleet.yaml:2", "where slices exist while jobs need them; remove it"),
        ("type: tpu7x-64", "fleet.yaml:2", "'tpu7x-64' has several hosts"),
    ],
)
def test_capacity_and_hosts_that_are_documented_for_node_pools_only_are_refused(group: str, at: str, says: str) -> None:
    (problem,) = refused_fleet(TWO % (group, "type: v5p-32"), CLUSTER_MODE="autopilot")
    assert problem.startswith(f"{at}: ")
    assert says in problem


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("type: v6e-16", "type: v6e-16"),
        ("type: v6e-16", "type: v6e-16, capacity: spot"),
        ("type: v6e-16, capacity: spot", "type: v6e-16, capacity: flex-start"),
        ("type: v6e-16, capacity: reservation, reservation: mine", "type: v6e-16, capacity: spot"),
        ("type: v6e-8", "type: ct6e-standard-8t-2x4"),  # as many chips on two hosts and on one
    ],
)
def test_groups_that_kueue_would_mix_up_are_refused_where_pools_cannot_carry_their_names(one: str, two: str) -> None:
    (problem,) = refused_fleet(TWO % (one, two), CLUSTER_MODE="autopilot")
    assert problem.startswith("fleet.yaml:3: tpu_pools.two: is the same accelerator, topology and zone as 'one'")
    assert with_fleet(TWO % (one, two)).groups


@pytest.mark.parametrize(
    "two",
    [
        "type: v6e-32",
        "type: v6e-16, zone: us-east5-a",
        "type: v6e-16, capacity: reservation, reservation: another",
    ],
)
def test_groups_of_another_shape_zone_or_reservation_are_told_apart(two: str) -> None:
    one = "type: v6e-16, capacity: reservation, reservation: mine"
    assert len(with_fleet(TWO % (one, two), CLUSTER_MODE="autopilot").groups) == 2


@pytest.mark.parametrize(
    ("capacity", "labels"),
    [
        ("capacity: on-demand", {}),
        ("capacity: spot", {"cloud.google.com/gke-spot": "true"}),
        ("capacity: flex-start", {"cloud.google.com/gke-flex-start": "true"}),
        ("capacity: reservation, reservation: mine", SPECIFIC),
        (
            "capacity: reservation, reservation: projects/theirs/reservations/mine",
            {**SPECIFIC, "cloud.google.com/reservation-project": "theirs"},
        ),
        (
            "capacity: reservation, reservation: mine, reservation_block: b, reservation_sub_block: s",
            {
                **SPECIFIC,
                "cloud.google.com/reservation-blocks": "b",
                "cloud.google.com/reservation-subblocks": "s",
            },
        ),
    ],
)
def test_pods_select_their_capacity_and_no_label_of_ours(capacity: str, labels: dict[str, str]) -> None:
    fleet = with_fleet(TWO % (f"type: v6e-16, {capacity}", "type: v5p-32"), CLUSTER_MODE="autopilot")
    assert node_selector(fleet.groups[0], autopilot=True) == OF_SLICE | labels
    assert all(group.autoscaled for group in (*fleet.groups, *loaded(CLUSTER_MODE="autopilot").groups))


def test_a_node_takes_the_addresses_of_autopilot_s_pods() -> None:
    """32 pods, and so 64 addresses, where a TPU node of a pool takes 32 addresses."""
    fits = {"PODS_CIDR": "10.4.0.0/20", "NUM_TPU_POOLS": "16", "CPU_MAX_NODES": "1"}
    assert loaded(**fits).settings.num_tpu_pools == 16
    (problem,) = refused(**fits, CLUSTER_MODE="autopilot")
    assert problem.startswith("PODS_CIDR: 10.4.0.0/20 holds 64 nodes of 32 pods, this fleet needs 66")
