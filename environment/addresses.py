"""Whether the ranges are ones that GKE takes, and whether the fleet's nodes and pods fit in them.

A range in use cannot shrink or move, so ranges are settings and never derived; they are only checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from ipaddress import IPv4Network

from environment.cpu_machine_types import SYSTEM_NODES
from environment.fleet.model import Fleet
from environment.problems import Problem
from environment.settings.model import Settings

MAX_PODS_TPU = 16  # a /27 a node
MAX_PODS_CPU = 110  # GKE's default, a /24 a node
_MAX_PODS_AUTOPILOT = 32  # of every node; https://cloud.google.com/kubernetes-engine/docs/concepts/alias-ips

_RESERVED = 4  # Google keeps the first two and the last two addresses of a subnet's primary range
_CONTROL_PLANE = 1  # the endpoint by which nodes reach the control plane is an address of the subnet
_LARGEST_PODS_RANGE = 9
_LARGEST_SUBNET = 8

# https://cloud.google.com/vpc/docs/subnets#ipv4-ranges
_PRIVATE = [
    IPv4Network(text)
    for text in (
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24"),
        *("192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4"),
    )
]
_PROHIBITED = [
    IPv4Network(text)
    for text in (
        *("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "199.36.153.4/30", "199.36.153.8/30", "224.0.0.0/4"),
        "255.255.255.255/32",
    )
]
_DOCKER = IPv4Network("172.17.0.0/16")


def address_problems(settings: Settings, fleet: Fleet) -> list[Problem]:
    """Ranges that Google refuses, that overlap, or that are too small for the fleet."""
    ranges = _ranges(settings)
    return [
        *_prohibited(ranges),
        *_overlaps(ranges),
        *_pods_capacity(settings, fleet),
        *_subnet_capacity(settings, fleet),
    ]


def address_warnings(settings: Settings) -> list[Problem]:
    """Ranges that Google takes and that may yet surprise."""
    problems = []
    for key, network in _ranges(settings).items():
        if not any(network.subnet_of(private) for private in _PRIVATE):
            problems.append(
                Problem(
                    keys=(key,),
                    message=f"'{network}' is public address space: the hosts that own it cannot be reached from the "
                    "cluster",
                )
            )
        if network.overlaps(_DOCKER):
            problems.append(
                Problem(
                    keys=(key,),
                    message=f"'{network}' overlaps {_DOCKER}, the bridge network of Docker; programs that run Docker, "
                    "Cloud Build among them, cannot reach it",
                )
            )
    return problems


def addresses_per_node(max_pods: int) -> int:
    """How many addresses of the pods range a node takes: the power of two that is at least twice its pods.

    https://cloud.google.com/kubernetes-engine/docs/concepts/alias-ips#default_limits_per_node
    """
    return 1 << (2 * max_pods - 1).bit_length()


def _ranges(settings: Settings) -> dict[str, IPv4Network]:
    ranges = {
        "SUBNET_CIDR": settings.subnet_cidr,
        "PODS_CIDR": settings.pods_cidr,
        "SERVICES_CIDR": settings.services_cidr,
    }
    if settings.control_plane_cidr:
        ranges["CONTROL_PLANE_CIDR"] = settings.control_plane_cidr
    return ranges


def _prohibited(ranges: dict[str, IPv4Network]) -> Iterator[Problem]:
    for key, network in ranges.items():
        kept = next((prohibited for prohibited in _PROHIBITED if prohibited.overlaps(network)), None)
        if kept:
            yield Problem(
                keys=(key,),
                message=f"'{network}' overlaps {kept}, which Google keeps; use a range of 10.0.0.0/8",
            )


def _overlaps(ranges: dict[str, IPv4Network]) -> Iterator[Problem]:
    for (first, network), (second, other) in itertools.combinations(ranges.items(), 2):
        if network.overlaps(other):
            free = _free_range(other.prefixlen, [taken for key, taken in ranges.items() if key != second])
            hint = f", such as {free}" if free else ""
            yield Problem(
                keys=(second, first),
                message=f"'{other}' overlaps {first} '{network}'; give it a range of its own{hint}",
            )


def _free_range(prefix_length: int, taken: list[IPv4Network]) -> IPv4Network | None:
    """The first range of that size in 10.0.0.0/8 that overlaps none of the others."""
    candidate = IPv4Network((10 << 24, prefix_length))
    while candidate.subnet_of(_PRIVATE[0]):
        blocker = next((other for other in taken if other.overlaps(candidate)), None)
        if blocker is None:
            return candidate
        end = int(max(blocker.broadcast_address, candidate.broadcast_address)) + 1
        size = candidate.num_addresses
        candidate = IPv4Network((-(-end // size) * size, prefix_length))
    return None


def _cpu_nodes(settings: Settings) -> int:
    """Of the CPU and the system pool, and one more of each: an upgrade adds a node first, and at creation GKE's default
    pool is there. Autopilot makes nodes for Kueue and JobSet as for all pods.
    """
    return settings.cpu_max_nodes + 1 + (0 if settings.autopilot else SYSTEM_NODES + 1)


def _tpu_nodes(fleet: Fleet) -> int:
    """All hosts there can be, and one more if some slice has one host: an upgrade adds a node to such a pool first.

    The nodes of a multi-host pool are recreated in place.
    """
    spare = any(not group.slice.multi_host for group in fleet.groups)
    return sum(group.hosts for group in fleet.groups) + spare


def _pods_capacity(settings: Settings, fleet: Fleet) -> Iterator[Problem]:
    network = settings.pods_cidr
    most_tpu, most_cpu = (_MAX_PODS_AUTOPILOT,) * 2 if settings.autopilot else (MAX_PODS_TPU, MAX_PODS_CPU)
    small, large = addresses_per_node(most_tpu), addresses_per_node(most_cpu)
    tpu_nodes, cpu_nodes = _tpu_nodes(fleet), _cpu_nodes(settings)
    # Whole blocks of the larger size, so that the smaller ones may lie anywhere.
    needed = -(-tpu_nodes * small // large) * large + cpu_nodes * large
    if needed > network.num_addresses:
        yield Problem(
            keys=("PODS_CIDR", *fleet.size_keys, "CPU_MAX_NODES"),
            message=f"{network} holds {network.num_addresses // small} nodes of {most_tpu} pods, this fleet needs "
            f"{needed // small} ({tpu_nodes} TPU nodes, and {cpu_nodes} CPU nodes of {most_cpu} pods that take as "
            f"much as {large // small} each); {_larger(needed, _LARGEST_PODS_RANGE)}",
        )


def _subnet_capacity(settings: Settings, fleet: Fleet) -> Iterator[Problem]:
    network = settings.subnet_cidr
    kept = _RESERVED + _CONTROL_PLANE
    nodes = _tpu_nodes(fleet) + _cpu_nodes(settings) + sum(vm.slice.hosts for vm in fleet.tpu_vms)
    if nodes + kept > network.num_addresses:
        yield Problem(
            keys=("SUBNET_CIDR", *fleet.size_keys, "CPU_MAX_NODES"),
            message=f"{network} holds {network.num_addresses - kept} nodes ({kept} addresses are taken), this fleet "
            f"needs {nodes} with its CPU nodes{' and TPU VMs' if fleet.tpu_vms else ''}; "
            f"{_larger(nodes + kept, _LARGEST_SUBNET)}",
        )


def _larger(addresses: int, largest: int) -> str:
    prefix_length = 32 - (addresses - 1).bit_length()
    if prefix_length < largest:
        return "no range is large enough, use fewer slices"
    return f"use /{prefix_length} or larger"
