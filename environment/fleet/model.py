"""The fleet: pool groups of equal slices, and the teams that may use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from environment.members import Member
from environment.settings.model import Settings
from environment.tpu import Slice, slice_for
from environment.tpu_catalogue import GENERATIONS

# WorkloadPriorityClasses and their values. A job of a higher one starts first, and stops a lower one of its own team.
PRIORITIES = {"verylow": 100, "low": 250, "medium": 500, "high": 750, "veryhigh": 1000}

# Of Dynamic Workload Scheduler: https://cloud.google.com/kubernetes-engine/docs/concepts/dws
LONGEST_RUN_HOURS = 7 * 24
LONGEST_WAIT_HOURS = 7 * 24  # how long a job waits for machines that only it can give


class CapacityMode(Enum):
    """How Google is asked for the machines of a pool group. The value is the word in fleet.yaml."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVATION = "reservation"
    FLEX_START = "flex-start"  # Dynamic Workload Scheduler: created when pods wait and there is capacity
    QUEUED = "queued"  # the same, asked for by Kueue with a ProvisioningRequest for all hosts of a job at once

    @property
    def comes_and_goes(self) -> bool:
        """Whether Dynamic Workload Scheduler gives the machines: for a time, to jobs that wait, never for good."""
        return self in (CapacityMode.FLEX_START, CapacityMode.QUEUED)

    @property
    def billed_as(self) -> str:
        """Whose price it has. Queued provisioning is flex-start: both are the Dynamic Workload Scheduler's."""
        return str((CapacityMode.FLEX_START if self is CapacityMode.QUEUED else self).value)


@dataclass(frozen=True, kw_only=True)
class PoolGroup:
    """Equal slices in one zone; every slice is a node pool of its own."""

    name: str  # also the name of its Kueue flavor
    slice: Slice
    slices: int
    zone: str
    capacity: CapacityMode = CapacityMode.ON_DEMAND
    reservation: str = ""  # as a node pool's reservation affinity names it, with its block if one is given
    autoscaled: bool = False  # each slice has 0 or all of its hosts, as pods need them; always so on Autopilot
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
    host_access: bool = False  # its TPU pods may be privileged and use the network of their host


@dataclass(frozen=True, kw_only=True)
class TpuVm:
    """One slice as TPU VMs, without GKE: a VM a host, all of one team."""

    name: str
    slice: Slice
    team: str
    zone: str
    runtime: str  # Google's software version of the VMs
    capacity: CapacityMode = CapacityMode.ON_DEMAND

    @property
    def accelerator_type(self) -> str:
        """The slice's type as the Cloud TPU API names it: v6e-8 is one host of 8 chips there, on GKE two of 4."""
        generation = GENERATIONS[self.slice.generation]
        return f"{generation.type_name}-{self.slice.chips * generation.counts_per_chip}"


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Pool groups, teams and TPU VMs, and what a message about a part of them begins with.

    `keys` has, by path (`tpu_pools.dev.zone`), the place in fleet.yaml, or the setting where there is no such file.
    """

    groups: tuple[PoolGroup, ...]
    teams: tuple[Team, ...]
    tpu_vms: tuple[TpuVm, ...] = ()
    fair_sharing: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)
    size_keys: tuple[str, ...] = ("tpu_pools",)  # what decides how many slices there are

    def key(self, *path: str) -> str:
        return self.keys.get(".".join(path), ".".join(path))


def implicit_fleet(settings: Settings) -> Fleet:
    """The fleet where there is no fleet.yaml: one pool group and one team."""
    group = PoolGroup(
        name="tpu",
        slice=slice_for(settings.tpu_type),
        slices=settings.num_tpu_pools,
        zone=settings.zone,
        autoscaled=settings.autopilot,
    )
    team = Team(
        name=settings.namespace,
        share=Fraction(1),
        pools=(group.name,),
        members=settings.members,
        host_access=settings.xpk_compatibility,
    )
    return Fleet(
        groups=(group,),
        teams=(team,),
        keys={
            f"tpu_pools.{group.name}": "NUM_TPU_POOLS",
            f"tpu_pools.{group.name}.zone": "ZONE",
            f"tpu_pools.{group.name}.type": "TPU_TYPE",
            f"teams.{team.name}": "NAMESPACE",
            f"teams.{team.name}.members": "MEMBERS",
            f"teams.{team.name}.host_access": "XPK_COMPATIBILITY",
            "teams": "NAMESPACE",
        },
        size_keys=("NUM_TPU_POOLS", "TPU_TYPE"),
    )
