"""What the environment has to offer and to whom: pool groups of equal slices, and teams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from environment.capacity import CLUSTER_PODS_CPU, CLUSTER_PODS_GIB, node_capacity
from environment.cpu import cpu_machine_type
from environment.problems import Problem
from environment.settings import Settings
from environment.tpu import ZONES, Slice, slice_for

# https://cloud.google.com/kubernetes-engine/quotas
_MOST_NODES = 65_000
_NODES_WITHOUT_ASKING = 5_000


@dataclass(frozen=True, kw_only=True)
class PoolGroup:
    """Equal slices in one zone; every slice is a node pool of its own."""

    name: str  # also the name of its Kueue flavor
    slice: Slice
    slices: int
    zone: str

    @property
    def node_pools(self) -> tuple[str, ...]:
        """One name a slice. A slice keeps its name when others come or go at the end."""
        return tuple(f"{self.name}-{index}" for index in range(self.slices))

    @property
    def hosts(self) -> int:
        return self.slices * self.slice.hosts

    @property
    def chips(self) -> int:
        return self.slices * self.slice.chips


@dataclass(frozen=True, kw_only=True)
class Team:
    """Who submits jobs. The name is also that of its namespace and its ClusterQueue; shares are relative."""

    name: str
    share: int


def groups_of(settings: Settings) -> tuple[PoolGroup, ...]:
    return (
        PoolGroup(
            name="tpu",
            slice=slice_for(settings.tpu_type),
            slices=settings.num_tpu_pools,
            zone=settings.zone,
        ),
    )


def teams_of(settings: Settings) -> tuple[Team, ...]:
    return (Team(name=settings.namespace, share=1),)


def fleet_problems(settings: Settings, groups: Sequence[PoolGroup]) -> list[Problem]:
    """A fleet that is larger than a GKE cluster can be."""
    nodes = _nodes(settings, groups)
    if nodes <= _MOST_NODES:
        return []
    return [
        Problem(
            keys=("NUM_TPU_POOLS", "TPU_TYPE", "CPU_MAX_NODES"),
            message=f"'{settings.num_tpu_pools}' slices make a cluster of {nodes} nodes; GKE takes {_MOST_NODES}, use "
            "fewer slices",
        )
    ]


def fleet_warnings(settings: Settings, groups: Sequence[PoolGroup]) -> list[Problem]:
    """TPUs in a zone where Google does not list them, clusters that need a quota first, a CPU pool with no room."""
    found = _no_room_for_jobs(settings)
    for group in groups:
        generation = group.slice.generation
        if group.zone not in ZONES[generation]:
            found.append(
                Problem(
                    keys=("ZONE", "TPU_TYPE"),
                    message=f"Google's list of November 2026 has no {generation} in '{group.zone}', but in "
                    f"{', '.join(ZONES[generation])}; go on if you know that yours are there",
                )
            )
    nodes = _nodes(settings, groups)
    if nodes > _NODES_WITHOUT_ASKING:
        found.append(
            Problem(
                keys=("NUM_TPU_POOLS", "TPU_TYPE", "CPU_MAX_NODES"),
                message=f"{nodes} nodes are more than the {_NODES_WITHOUT_ASKING} that GKE gives a cluster unasked; "
                "have the quota raised before you deploy",
            )
        )
    return found


def _no_room_for_jobs(settings: Settings) -> list[Problem]:
    machine = cpu_machine_type(settings.cpu_machine_type)
    node = node_capacity(vcpu=machine.vcpu, memory_gb=machine.memory_gb)
    cores = settings.cpu_max_nodes * node.cpu - CLUSTER_PODS_CPU
    memory = settings.cpu_max_nodes * node.memory_gib - CLUSTER_PODS_GIB
    if cores >= 1 and memory >= 1:
        return []
    return [
        Problem(
            keys=("CPU_MACHINE_TYPE", "CPU_MAX_NODES"),
            message=f"{settings.cpu_max_nodes} x {machine.name} has no room beside the cluster's own pods, so parts of "
            "jobs that need no TPU would never start; choose a larger machine type or raise CPU_MAX_NODES",
        )
    ]


def _nodes(settings: Settings, groups: Sequence[PoolGroup]) -> int:
    return settings.cpu_max_nodes + sum(group.hosts for group in groups)
