"""What the environment has to offer and to whom: pool groups of equal slices, and teams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from environment.capacity import CLUSTER_PODS_CPU, CLUSTER_PODS_GIB, node_capacity
from environment.cpu import cpu_machine_type
from environment.problems import Problem
from environment.settings import Settings
from environment.tpu import ZONES, Slice, slice_for

# https://cloud.google.com/kubernetes-engine/quotas
_MOST_NODES = 65_000
_NODES_WITHOUT_ASKING = 5_000


class CapacityMode(Enum):
    """How Google is asked for the machines of a pool group. The value is the word in fleet.yaml."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVATION = "reservation"
    FLEX_START = "flex-start"  # Dynamic Workload Scheduler: made when pods wait for it and capacity comes free
    QUEUED = "queued"  # the same, asked for by Kueue with a ProvisioningRequest for all hosts of a job at once


@dataclass(frozen=True, kw_only=True)
class PoolGroup:
    """Equal slices in one zone; every slice is a node pool of its own."""

    name: str  # also the name of its Kueue flavor
    slice: Slice
    slices: int
    zone: str
    capacity: CapacityMode = CapacityMode.ON_DEMAND
    reservation: str = ""  # as a node pool's reservation affinity names it, with its block if one is given
    autoscaled: bool = False  # each node pool has 0 or all of its hosts, as pods need them; always with DWS modes
    max_run_seconds: int | None = None  # with DWS modes: when Google takes the hosts back; None is its limit of 7 days

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


class MemberKind(Enum):
    """What an email address stands for. The value is what Google's IAM puts before it."""

    USER = "user"
    GROUP = "group"


@dataclass(frozen=True, kw_only=True)
class Member:
    """A person, or a Google group of people, who may submit a team's jobs."""

    kind: MemberKind
    email: str


@dataclass(frozen=True, kw_only=True)
class Team:
    """Who submits jobs. The name is also that of its namespace and its ClusterQueue; shares are relative.

    The limits count slices of each pool group: None is as many as there are, 0 is none.
    """

    name: str
    share: Fraction
    pools: tuple[str, ...]  # the pool groups that it may use, in the fleet's order
    priority: str | None = None  # the WorkloadPriorityClass of its jobs; None is Kueue's own default, priority 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    members: tuple[Member, ...] = ()


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
    return (Team(name=settings.namespace, share=Fraction(1), pools=("tpu",)),)


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
