"""Whether a fleet is one that GKE and Kueue take, in the region and with the CPU nodes of the settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from environment.cpu_machine_types import SYSTEM_NODES, cpu_machine_type
from environment.fleet import xpk
from environment.fleet.autopilot import autopilot_problems
from environment.fleet.model import LONGEST_WAIT_HOURS, CapacityMode, Fleet
from environment.members import MemberKind
from environment.node_capacity import CLUSTER_PODS_CPU, CLUSTER_PODS_GIB, node_capacity
from environment.problems import Problem
from environment.settings.model import Settings
from environment.settings.values import region_of
from environment.tpu_catalogue import TPU_VM_RUNTIMES, ZONES_OF_GENERATION
from vocabulary.printable import listed

# https://cloud.google.com/kubernetes-engine/quotas
_MOST_NODES = 65_000
_NODES_WITHOUT_ASKING = 5_000

_MOST_FLAVORS = 64  # in a resource group of a ClusterQueue: its schema, Kueue 0.19.2


def misnamed_fleet(path: Path) -> list[Problem]:
    """A file beside `path` under nearly its name. It is an error: without it the defaults would be deployed."""
    try:
        names = sorted(file.name for file in path.parent.iterdir())
    except OSError:
        return []
    return [
        Problem(keys=(name,), message=f"nothing reads a file of this name; rename it to {path.name}, or remove it")
        for name in names
        if name != path.name and name.lower() in (path.name, f"{path.stem}.yml")
    ]


def fleet_problems(settings: Settings, fleet: Fleet) -> Iterator[Problem]:
    """Slices out of the region, members that GKE would not know, and fleets larger than GKE and Kueue take."""
    for section, of_fleet, has in (("tpu_pools", fleet.groups, "a cluster"), ("tpu_vms", fleet.tpu_vms, "the subnet")):
        for item in of_fleet:
            if region_of(item.zone) != settings.region and item.zone != settings.zone:
                yield Problem(
                    keys=(fleet.key(section, item.name, "zone"), "REGION"),
                    message=f"'{item.zone}' is not in REGION '{settings.region}', and {has} has one region; choose a "
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
        if team.host_access and settings.autopilot and not settings.xpk_compatibility:
            yield Problem(
                keys=(fleet.key("teams", team.name, "host_access"), "CLUSTER_MODE"),
                message="'true' is not possible with CLUSTER_MODE=autopilot, where GKE refuses privileged pods and the "
                "network of the host; remove it",
            )
        if len(team.pools) >= _MOST_FLAVORS:
            yield Problem(
                keys=(fleet.key("teams", team.name), *fleet.size_keys),
                message=f"may use {len(team.pools)} pool groups; Kueue takes {_MOST_FLAVORS - 1} in a queue, so name "
                "fewer in its pools",
            )
    if settings.autopilot:
        yield from autopilot_problems(fleet)
    if settings.xpk_compatibility and not xpk.resources(fleet.groups):
        yield Problem(
            keys=("XPK_COMPATIBILITY", *fleet.size_keys),
            message="'true' would lead to nothing: jobs of xpk start on hosts of 4 chips, or on a single host of 1, "
            "and not on several hosts of tpu7x; set it to false, or use other slices",
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
    for section, of_fleet in (("tpu_pools", fleet.groups), ("tpu_vms", fleet.tpu_vms)):
        for item in of_fleet:
            generation = item.slice.generation
            if item.zone not in ZONES_OF_GENERATION[generation]:
                yield Problem(
                    keys=(fleet.key(section, item.name, "zone"), fleet.key(section, item.name, "type")),
                    message=f"Google's list of November 2026 has no {generation} in '{item.zone}', but in "
                    f"{', '.join(ZONES_OF_GENERATION[generation])}; go on if you know that yours are there",
                )
    yield from _shared_hosts(fleet)
    yield from _one_patience(settings, fleet)
    for vm in fleet.tpu_vms:
        usual = TPU_VM_RUNTIMES[vm.slice.generation]
        if vm.runtime != usual:
            yield Problem(
                keys=(fleet.key("tpu_vms", vm.name, "runtime"),),
                message=f"'{vm.runtime}' is not the software version that Google names for {vm.slice.generation}, "
                f"'{usual}'; go on if you know that it exists",
            )
    nodes = _nodes(settings, fleet)
    if nodes > _NODES_WITHOUT_ASKING:
        yield Problem(
            keys=(*fleet.size_keys, "CPU_MAX_NODES"),
            message=f"{nodes} nodes are more than the {_NODES_WITHOUT_ASKING} that GKE gives a cluster unasked; "
            "have the quota raised before you deploy",
        )


def _shared_hosts(fleet: Fleet) -> Iterator[Problem]:
    """A privileged pod is root on its host, and may leave something there for the pods of another team."""
    for team in fleet.teams:
        others = [other for other in fleet.teams if other is not team and {*other.pools} & {*team.pools}]
        shared = [pool for pool in team.pools if any(pool in other.pools for other in others)]
        if team.host_access and others:
            names = listed([other.name for other in others])
            yield Problem(
                keys=(fleet.key("teams", team.name, "host_access"),),
                message=f"pods of {team.name} may be root on hosts of {listed(shared)}, which {names} may use "
                "after them; give teams pool groups of their own by `pools`, or set host_access: false",
            )


def _one_patience(settings: Settings, fleet: Fleet) -> Iterator[Problem]:
    """Kueue 0.19 has one waitForPodsReady of all queues, which must be as long as flex-start may take."""
    flex_start = [group.name for group in fleet.groups if group.capacity is CapacityMode.FLEX_START]
    others = [group.name for group in fleet.groups if group.capacity is not CapacityMode.FLEX_START]
    if flex_start and others:
        instead = "" if settings.autopilot else "use queued, for which Kueue waits before it starts a job, or "
        yield Problem(
            keys=tuple(fleet.key("tpu_pools", name, "capacity") for name in flex_start),
            message=f"with flex-start a job may hold its chips {LONGEST_WAIT_HOURS} hours before all its pods run, on "
            f"{listed(others)} too, for Kueue has one such time (waitForPodsReady); {instead}look at the chips without "
            "pods in `tpuenv status`",
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
    return settings.cpu_max_nodes + SYSTEM_NODES + sum(group.hosts for group in fleet.groups)
