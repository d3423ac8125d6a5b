"""What the environment has to offer and to whom: pool groups of equal slices, and teams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from pathlib import Path

from environment.capacity import CLUSTER_PODS_CPU, CLUSTER_PODS_GIB, node_capacity
from environment.cpu import cpu_machine_type
from environment.members import Member, MemberKind
from environment.problems import Problem
from environment.settings.model import Settings
from environment.settings.values import region_of
from environment.tpu import ZONES, Slice, slice_for

# https://cloud.google.com/kubernetes-engine/quotas
_MOST_NODES = 65_000
_NODES_WITHOUT_ASKING = 5_000

_MOST_FLAVORS = 64  # in a resource group of a ClusterQueue: its schema, Kueue 0.19.2

# WorkloadPriorityClasses and their values. A job of a higher one starts first, and stops a lower one of its own team.
PRIORITIES = {"verylow": 100, "low": 250, "medium": 500, "high": 750, "veryhigh": 1000}


class CapacityMode(Enum):
    """How Google is asked for the machines of a pool group. The value is the word in fleet.yaml."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVATION = "reservation"
    FLEX_START = "flex-start"  # Dynamic Workload Scheduler: made when pods wait for it and capacity comes free
    QUEUED = "queued"  # the same, asked for by Kueue with a ProvisioningRequest for all hosts of a job at once

    @property
    def comes_and_goes(self) -> bool:
        """Whether Dynamic Workload Scheduler gives the machines: for a time, to jobs that wait, never for good."""
        return self in (CapacityMode.FLEX_START, CapacityMode.QUEUED)


@dataclass(frozen=True, kw_only=True)
class PoolGroup:
    """Equal slices in one zone; every slice is a node pool of its own."""

    name: str  # also the name of its Kueue flavor
    slice: Slice
    slices: int
    zone: str
    capacity: CapacityMode = CapacityMode.ON_DEMAND
    reservation: str = ""  # as a node pool's reservation affinity names it, with its block if one is given
    autoscaled: bool = False  # each node pool has 0 or all of its hosts, as pods need them
    max_run_seconds: int | None = None  # when Dynamic Workload Scheduler takes the hosts back; None: it gives none

    @property
    def node_pools(self) -> tuple[str, ...]:
        """One name a slice. A slice keeps its name when others come or go at the end."""
        return tuple(f"{self.name}-{index}" for index in range(self.slices))

    @property
    def hosts(self) -> int:
        """The most there can be, if the group is autoscaled."""
        return self.slices * self.slice.hosts

    @property
    def chips(self) -> int:
        return self.slices * self.slice.chips


@dataclass(frozen=True, kw_only=True)
class Team:
    """Who submits jobs. The name is also that of its namespace and its ClusterQueue; shares are relative.

    The limits count slices of each pool group: None is as many as there are, 0 is none.
    """

    name: str
    share: Fraction
    pools: tuple[str, ...]  # the pool groups that it may use, in the fleet's order
    priority: str | None = None  # the WorkloadPriorityClass that its rendered manifests name, if it has one of its own
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Pool groups and teams, and what a message about a part of them begins with.

    `keys` has, by path (`tpu_pools.dev.zone`), the place in fleet.yaml, or the setting where there is no such file.
    """

    groups: tuple[PoolGroup, ...]
    teams: tuple[Team, ...]
    fair_sharing: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)
    size_keys: tuple[str, ...] = ("tpu_pools",)  # what decides how many slices there are

    def key(self, *path: str) -> str:
        return self.keys.get(".".join(path), ".".join(path))


def implicit_fleet(settings: Settings) -> Fleet:
    """The fleet where there is no fleet.yaml: one pool group and one team."""
    group = PoolGroup(name="tpu", slice=slice_for(settings.tpu_type), slices=settings.num_tpu_pools, zone=settings.zone)
    team = Team(name=settings.namespace, share=Fraction(1), pools=(group.name,), members=settings.members)
    return Fleet(
        groups=(group,),
        teams=(team,),
        keys={
            f"tpu_pools.{group.name}": "NUM_TPU_POOLS",
            f"tpu_pools.{group.name}.zone": "ZONE",
            f"tpu_pools.{group.name}.type": "TPU_TYPE",
            f"teams.{team.name}": "NAMESPACE",
            f"teams.{team.name}.members": "MEMBERS",
            "teams": "NAMESPACE",
        },
        size_keys=("NUM_TPU_POOLS", "TPU_TYPE"),
    )


def misnamed_fleet(path: Path) -> list[Problem]:
    """A file beside `path` that was meant to be it: the defaults would be deployed, and nobody told."""
    try:
        names = sorted(each.name for each in path.parent.iterdir())
    except OSError:
        return []
    return [
        Problem(keys=(name,), message=f"nothing reads a file of this name; rename it to {path.name}, or remove it")
        for name in names
        if name != path.name and name.lower() in (path.name, f"{path.stem}.yml")
    ]


def fleet_problems(settings: Settings, fleet: Fleet) -> Iterator[Problem]:
    """Groups out of the region, members that GKE would not know, and fleets larger than GKE and Kueue take."""
    for group in fleet.groups:
        region = region_of(group.zone)
        if region != settings.region and group.zone != settings.zone:
            yield Problem(
                keys=(fleet.key("tpu_pools", group.name, "zone"), "REGION"),
                message=f"'{group.zone}' is not in REGION '{settings.region}', and a cluster has one region; choose a "
                "zone of that region",
            )
    for team in fleet.teams:
        groups = [member.email for member in team.members if member.kind is MemberKind.GROUP]
        if groups and not settings.rbac_security_group:
            yield Problem(
                keys=(fleet.key("teams", team.name, "members"), "RBAC_SECURITY_GROUP"),
                message=f"'group:{groups[0]}' needs RBAC_SECURITY_GROUP, without which GKE knows people one by one; "
                "set it, or name the group's members",
            )
        if len(team.pools) >= _MOST_FLAVORS:
            yield Problem(
                keys=(fleet.key("teams", team.name), *fleet.size_keys),
                message=f"may use {len(team.pools)} pool groups; Kueue takes {_MOST_FLAVORS - 1} in a queue, so name "
                "fewer in its pools",
            )
    nodes = _nodes(settings, fleet)
    if nodes > _MOST_NODES:
        yield Problem(
            keys=(*fleet.size_keys, "CPU_MAX_NODES"),
            message=f"'{sum(group.slices for group in fleet.groups)}' slices make a cluster of {nodes} nodes; GKE "
            f"takes {_MOST_NODES}, use fewer slices",
        )


def fleet_warnings(settings: Settings, fleet: Fleet) -> Iterator[Problem]:
    """TPUs in a zone where Google does not list them, clusters that need a quota first, a CPU pool with no room."""
    yield from _no_room_for_jobs(settings)
    for group in fleet.groups:
        generation = group.slice.generation
        if group.zone not in ZONES[generation]:
            yield Problem(
                keys=(fleet.key("tpu_pools", group.name, "zone"), fleet.key("tpu_pools", group.name, "type")),
                message=f"Google's list of November 2026 has no {generation} in '{group.zone}', but in "
                f"{', '.join(ZONES[generation])}; go on if you know that yours are there",
            )
    nodes = _nodes(settings, fleet)
    if nodes > _NODES_WITHOUT_ASKING:
        yield Problem(
            keys=(*fleet.size_keys, "CPU_MAX_NODES"),
            message=f"{nodes} nodes are more than the {_NODES_WITHOUT_ASKING} that GKE gives a cluster unasked; "
            "have the quota raised before you deploy",
        )


def _no_room_for_jobs(settings: Settings) -> Iterator[Problem]:
    machine = cpu_machine_type(settings.cpu_machine_type)
    node = node_capacity(vcpu=machine.vcpu, memory_gb=machine.memory_gb)
    cores = settings.cpu_max_nodes * node.cpu - CLUSTER_PODS_CPU
    memory = settings.cpu_max_nodes * node.memory_gib - CLUSTER_PODS_GIB
    if cores < 1 or memory < 1:
        yield Problem(
            keys=("CPU_MACHINE_TYPE", "CPU_MAX_NODES"),
            message=f"{settings.cpu_max_nodes} x {machine.name} has no room beside the cluster's own pods, so parts of "
            "jobs that need no TPU would never start; choose a larger machine type or raise CPU_MAX_NODES",
        )


def _nodes(settings: Settings, fleet: Fleet) -> int:
    return settings.cpu_max_nodes + sum(group.hosts for group in fleet.groups)
