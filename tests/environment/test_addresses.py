"""Ranges that GKE would refuse are refused before anything is made, with the size that would do."""

from __future__ import annotations

import pytest

from environment.addresses import MAX_PODS_CPU, MAX_PODS_TPU, address_problems, addresses_per_node
from environment.fleet.model import Fleet, PoolGroup
from environment.tpu import slice_for
from tests.loading import loaded, refused


def test_a_node_takes_a_power_of_two_of_at_least_twice_its_pods() -> None:
    assert [addresses_per_node(pods) for pods in (8, 9, 16, 17, 32, 64, 65, 110, 128)] == [
        *(16, 32, 32, 64, 64, 128, 256, 256, 256),
    ]
    assert (addresses_per_node(MAX_PODS_TPU), addresses_per_node(MAX_PODS_CPU)) == (32, 256)


def test_a_pods_range_that_is_too_small_says_how_large_it_must_be() -> None:
    assert refused(TPU_TYPE="v5litepod-256", NUM_TPU_POOLS="4", PODS_CIDR="10.4.0.0/20") == (
        "PODS_CIDR: 10.4.0.0/20 holds 128 nodes of 16 pods, this fleet needs 320 (256 TPU nodes, and 8 CPU nodes of "
        "110 pods that take as much as 8 each); use /18 or larger",
    )


@pytest.mark.parametrize(
    ("keys", "prefix_length"),
    [
        # 8 hosts x 32 = 256, and (4 + 1) CPU nodes and (2 + 1) system nodes x 256: 9 blocks of 256
        ({}, 20),
        # 12 x 32 = 384 takes two blocks; 2 + 4 + 3 = 9
        ({"NUM_TPU_POOLS": "3", "CPU_MAX_NODES": "3"}, 20),
        # 4 x 32 takes one block; 1 + 4 + 3 = 8 blocks, exactly a /21
        ({"NUM_TPU_POOLS": "1", "CPU_MAX_NODES": "3"}, 21),
        # one host more for the upgrade of single-host pools: 9 x 32 takes two blocks; 2 + 4 + 3 = 9
        ({"TPU_TYPE": "v6e-4", "NUM_TPU_POOLS": "8", "CPU_MAX_NODES": "3"}, 20),
        # 7 + 1 hosts take one block; 1 + 4 + 3 = 8
        ({"TPU_TYPE": "v6e-4", "NUM_TPU_POOLS": "7", "CPU_MAX_NODES": "3"}, 21),
    ],
)
def test_the_smallest_pods_range_that_is_taken(keys: dict[str, str], prefix_length: int) -> None:
    assert loaded(**keys, PODS_CIDR=f"10.4.0.0/{prefix_length}")
    (problem,) = refused(**keys, PODS_CIDR=f"10.4.0.0/{prefix_length + 1}")
    assert problem.startswith("PODS_CIDR: ") and problem.endswith(f"use /{prefix_length} or larger")


@pytest.mark.parametrize(
    ("keys", "prefix_length"),
    [
        # 8 hosts + (4 + 1) CPU nodes + (2 + 1) system nodes + 5 = 21 addresses
        ({}, 27),
        # 4 + (3 + 1) + 3 + 5 = 16
        ({"NUM_TPU_POOLS": "1", "CPU_MAX_NODES": "3"}, 28),
        # 4 + (4 + 1) + 3 + 5 = 17
        ({"NUM_TPU_POOLS": "1", "CPU_MAX_NODES": "4"}, 27),
        # (4 + 1) + (3 + 1) + 3 + 5 = 17
        ({"TPU_TYPE": "v6e-4", "NUM_TPU_POOLS": "4", "CPU_MAX_NODES": "3"}, 27),
    ],
)
def test_the_smallest_subnet_that_is_taken(keys: dict[str, str], prefix_length: int) -> None:
    assert loaded(**keys, SUBNET_CIDR=f"10.0.0.0/{prefix_length}")
    (problem,) = refused(**keys, SUBNET_CIDR=f"10.0.0.0/{prefix_length + 1}")
    assert problem.startswith("SUBNET_CIDR: ") and problem.endswith(f"use /{prefix_length} or larger")


def test_one_group_of_single_hosts_among_others_is_reason_enough_for_a_spare_node() -> None:
    settings = loaded(SUBNET_CIDR="10.0.0.0/27").settings
    many = PoolGroup(name="many", slice=slice_for("v6e-64"), slices=1, zone="us-east5-b")
    single = PoolGroup(name="single", slice=slice_for("v6e-4"), slices=3, zone="us-east5-b")
    # 16 + 3 hosts + (4 + 1) CPU nodes + (2 + 1) system nodes + 5 = 32 addresses, were it not for the spare node
    (problem,) = address_problems(settings, Fleet(groups=(many, single), teams=()))
    assert problem.message.endswith("use /26 or larger")


def test_a_fleet_for_which_no_range_is_large_enough_is_refused() -> None:
    problems = refused(TPU_TYPE="v5p-17920", NUM_TPU_POOLS="10000")
    assert any("use fewer slices" in problem for problem in problems if problem.startswith("PODS_CIDR: "))
    assert any(problem.startswith("NUM_TPU_POOLS: '10000' slices make a cluster of 22400006") for problem in problems)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SUBNET_CIDR", "PODS_CIDR"),
        ("SUBNET_CIDR", "SERVICES_CIDR"),
        ("SUBNET_CIDR", "CONTROL_PLANE_CIDR"),
        ("PODS_CIDR", "SERVICES_CIDR"),
        ("PODS_CIDR", "CONTROL_PLANE_CIDR"),
        ("SERVICES_CIDR", "CONTROL_PLANE_CIDR"),
    ],
)
def test_ranges_that_overlap_are_refused_and_a_free_one_is_named(first: str, second: str) -> None:
    sizes = {"SUBNET_CIDR": 20, "PODS_CIDR": 16, "SERVICES_CIDR": 20, "CONTROL_PLANE_CIDR": 28}
    problems = refused(
        **{first: f"192.168.0.0/{sizes[first]}", second: f"192.168.0.0/{sizes[second]}"},
    )
    (problem,) = problems
    assert problem.startswith(f"{second}: '192.168.0.0/{sizes[second]}' overlaps {first} '192.168.0.0/{sizes[first]}'")
    free = problem.rpartition("such as ")[2]
    assert loaded(**{first: f"192.168.0.0/{sizes[first]}", second: free})


def test_ranges_that_touch_do_not_overlap() -> None:
    assert loaded(SUBNET_CIDR="10.0.0.0/20", SERVICES_CIDR="10.0.16.0/20", PODS_CIDR="10.1.0.0/16")


@pytest.mark.parametrize(
    "network",
    ["0.0.0.0/20", "127.0.0.0/20", "169.254.0.0/16", "224.0.0.0/20", "199.36.153.0/24", "255.255.255.0/24"],
)
def test_ranges_that_google_keeps_are_refused(network: str) -> None:
    (problem,) = refused(SERVICES_CIDR=network)
    assert problem.startswith(f"SERVICES_CIDR: '{network}' overlaps ") and "which Google keeps" in problem


@pytest.mark.parametrize("network", ["172.20.0.0/20", "192.168.0.0/20", "100.64.0.0/20", "240.0.0.0/20"])
def test_private_ranges_are_taken_without_a_word(network: str) -> None:
    assert loaded(SERVICES_CIDR=network).warnings == ()


def test_a_public_range_is_a_warning() -> None:
    (warning,) = loaded(PODS_CIDR="8.0.0.0/14").warnings
    assert warning.startswith("PODS_CIDR: '8.0.0.0/14' is public address space")


def test_a_range_over_the_bridge_of_docker_is_a_warning() -> None:
    (warning,) = loaded(SERVICES_CIDR="172.17.16.0/20").warnings
    assert warning.startswith("SERVICES_CIDR: '172.17.16.0/20' overlaps 172.17.0.0/16")
