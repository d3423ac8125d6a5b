"""Cores and memory of every team: its part of the CPU pool, and what the hosts of its slices have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter

from environment import Environment
from environment.cpu_machine_types import cpu_machine_type
from environment.fleet.model import PoolGroup, Team
from environment.fleet.quotas import claims_of, lendable, share_out, slices_of_teams
from environment.node_capacity import CLUSTER_PODS_CPU, CLUSTER_PODS_GIB, NodeCapacity, node_capacity
from vocabulary.quantity import count, gibibytes

Quota = Mapping[str, str]  # nominalQuota, borrowingLimit, lendingLimit -> canonical quantity


@dataclass(frozen=True, kw_only=True)
class _Resource:
    """Counted in whole cores or whole GiB. `cluster_pods`: what the pods that a cluster has once take of the pool."""

    name: str
    of_node: Callable[[NodeCapacity], int]
    cluster_pods: int
    quantity: Callable[[int], str]


_RESOURCES = (
    _Resource(name="cpu", of_node=attrgetter("cpu"), cluster_pods=CLUSTER_PODS_CPU, quantity=count),
    _Resource(name="memory", of_node=attrgetter("memory_gib"), cluster_pods=CLUSTER_PODS_GIB, quantity=gibibytes),
)
COMPUTE = tuple(resource.name for resource in _RESOURCES)


def cpu_node(environment: Environment) -> NodeCapacity:
    machine = cpu_machine_type(environment.settings.cpu_machine_type)
    return node_capacity(vcpu=machine.vcpu, memory_gb=machine.memory_gb)


def tpu_node(group: PoolGroup) -> NodeCapacity:
    machine = group.slice.machine_type
    return node_capacity(vcpu=machine.vcpu, memory_gb=machine.memory_gb)


def cpu_pool(environment: Environment) -> dict[str, str]:
    """Resource -> what the CPU pool at its largest has for jobs."""
    return {resource.name: resource.quantity(_in_cpu_pool(environment, resource)) for resource in _RESOURCES}


def compute_quotas(environment: Environment) -> dict[str, dict[str, Quota]]:
    """Team -> resource -> its quota. Those of all teams add up to what the CPU pool and all TPU hosts have for pods.

    A team that borrows slices borrows the cores and memory of their hosts, and one that lends slices lends these: the
    limits are those of the slices, with the CPU pool on top, which is shared without limits.
    """
    shared = slices_of_teams(environment.groups, environment.teams)
    quotas: dict[str, dict[str, Quota]] = {team.name: {} for team in environment.teams}
    for resource in _RESOURCES:
        pool = _in_cpu_pool(environment, resource)
        claims = claims_of(environment.teams)
        parts = share_out(pool, claims, [Fraction(0)] * len(claims))
        for team, part in zip(environment.teams, parts, strict=True):
            slices = {
                group: (shared[group.name][team.name], group.slice.hosts * resource.of_node(tpu_node(group)))
                for group in environment.groups
                if group.name in team.pools
            }
            quota = _quota(team, list(slices.values()), own_part=part, pool=pool)
            quotas[team.name][resource.name] = {kind: resource.quantity(number) for kind, number in quota.items()}
    return quotas


def _in_cpu_pool(environment: Environment, resource: _Resource) -> int:
    whole = environment.settings.cpu_max_nodes * resource.of_node(cpu_node(environment))
    return max(0, whole - resource.cluster_pods)


def _quota(team: Team, slices: list[tuple[int, int]], *, own_part: int, pool: int) -> dict[str, int]:
    """In cores or GiB. `slices`: of each pool group how many the team owns, and what the hosts of one have."""
    quota = {"nominalQuota": own_part + sum(owned * of_slice for owned, of_slice in slices)}
    if team.borrowing_limit is not None:
        quota["borrowingLimit"] = pool - own_part + sum(team.borrowing_limit * of_slice for _, of_slice in slices)
    if team.lending_limit is not None:
        quota["lendingLimit"] = own_part + sum(lendable(team, owned) * of_slice for owned, of_slice in slices)
    return quota
