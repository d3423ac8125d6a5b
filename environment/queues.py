"""Flavors, queues and priorities as plain Kubernetes objects, with quotas that add up to what exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from environment import Environment
from environment.capacity import CLUSTER_PODS_CPU, CLUSTER_PODS_GIB, NodeCapacity, node_capacity
from environment.cpu import cpu_machine_type
from environment.fleet import PoolGroup, Team
from environment.names import CPU_FLAVOR, CPU_GROUP, LOCAL_QUEUE, POOL_GROUP_LABEL
from environment.quantity import count, gibibytes

API_VERSION = "kueue.x-k8s.io/v1beta2"
COHORT = "fleet"  # all teams: what one does not use, another may borrow
RESOURCES = ("cpu", "memory", "google.com/tpu")

ACCELERATOR_LABEL = "cloud.google.com/gke-tpu-accelerator"  # GKE sets it, and the next one, on every TPU node
TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"
TPU_TAINT = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}  # GKE puts it on every TPU node

# What one node of a flavor gives to a pod: Kueue counts whole pools, so admission looks here. Quantities.
NODE_CPU_ANNOTATION = "tpuenv/node-cpu"
NODE_MEMORY_ANNOTATION = "tpuenv/node-memory"
NODE_CHIPS_ANNOTATION = "tpuenv/node-chips"

PRIORITIES = {"verylow": 100, "low": 250, "medium": 500, "high": 750, "veryhigh": 1000}

Quota = Mapping[str, str]  # resource -> canonical quantity


def queue_objects(environment: Environment) -> tuple[dict[str, Any], ...]:
    """Every queue object of the environment: flavors, priority classes, ClusterQueues, LocalQueues, in that order.

    Quotas of all teams add up to what the node pools hold. A team's chips are whole slices.
    """
    teams = environment.teams
    cpu_quotas = _cpu_quotas(environment)
    slices = _shared_slices(environment.groups, teams)
    return (
        _cpu_flavor(environment),
        *(_tpu_flavor(group) for group in environment.groups),
        *(_priority_class(name, value) for name, value in PRIORITIES.items()),
        *(
            _cluster_queue(
                team,
                {
                    CPU_FLAVOR: cpu_quota,
                    **{group.name: _tpu_quota(group, slices[group.name][i]) for group in environment.groups},
                },
            )
            for i, (team, cpu_quota) in enumerate(zip(teams, cpu_quotas, strict=True))
        ),
        *(_local_queue(team) for team in teams),
    )


def share_out(total: int, claims: Sequence[Fraction], owed: Sequence[Fraction]) -> list[int]:
    """`total` whole things by the method of the largest remainder; `claims` add up to 1.

    `owed` is what each still has to get from before. Everyone gets their part rounded down or up.
    """
    parts = [total * claim for claim in claims]
    got = [int(part) for part in parts]
    missing = sorted(range(len(parts)), key=lambda i: got[i] - parts[i] - owed[i])
    # Who has no fraction to round up is entitled to nothing more here, however much is owed.
    first = [i for i in missing if parts[i] > got[i]]
    for i in first[: total - sum(got)]:
        got[i] += 1
    return got


def _claims(teams: Sequence[Team]) -> list[Fraction]:
    whole = sum(team.share for team in teams)
    return [team.share / whole for team in teams]


def _shared_slices(groups: Sequence[PoolGroup], teams: Sequence[Team]) -> dict[str, list[int]]:
    """Group -> slices of each team. A team that came short in one group comes before the others in the next."""
    claims = _claims(teams)
    owed_chips = [Fraction(0)] * len(teams)
    shared = {}
    for group in groups:
        got = share_out(group.slices, claims, [chips / group.slice.chips for chips in owed_chips])
        shared[group.name] = got
        owed_chips = [
            owed + group.slice.chips * (group.slices * claim - slices)
            for owed, claim, slices in zip(owed_chips, claims, got, strict=True)
        ]
    return shared


def _cpu_quotas(environment: Environment) -> list[Quota]:
    """The CPU pool at its largest, shared out in whole cores and whole GiB."""
    node, nodes = _cpu_node(environment), environment.settings.cpu_max_nodes
    claims = _claims(environment.teams)
    none_owed = [Fraction(0)] * len(claims)
    cores = share_out(max(0, nodes * node.cpu - CLUSTER_PODS_CPU), claims, none_owed)
    memory = share_out(max(0, nodes * node.memory_gib - CLUSTER_PODS_GIB), claims, none_owed)
    return [_quota(cpu=cpu, gib=gib, chips=0) for cpu, gib in zip(cores, memory, strict=True)]


def _tpu_quota(group: PoolGroup, slices: int) -> Quota:
    """The chips of whole slices, and what their hosts have in cores and memory beside them."""
    node, hosts = _tpu_node(group), slices * group.slice.hosts
    return _quota(cpu=hosts * node.cpu, gib=hosts * node.memory_gib, chips=slices * group.slice.chips)


def _quota(*, cpu: int, gib: int, chips: int) -> Quota:
    return dict(zip(RESOURCES, (count(cpu), gibibytes(gib), count(chips)), strict=True))


def _cpu_node(environment: Environment) -> NodeCapacity:
    machine = cpu_machine_type(environment.settings.cpu_machine_type)
    return node_capacity(vcpu=machine.vcpu, memory_gb=machine.memory_gb)


def _tpu_node(group: PoolGroup) -> NodeCapacity:
    machine = group.slice.machine_type
    return node_capacity(vcpu=machine.vcpu, memory_gb=machine.memory_gb)


def _cpu_flavor(environment: Environment) -> dict[str, Any]:
    node = _cpu_node(environment)
    return _flavor(CPU_FLAVOR, node, chips=0, spec={"nodeLabels": {POOL_GROUP_LABEL: CPU_GROUP}})


def _tpu_flavor(group: PoolGroup) -> dict[str, Any]:
    labels = {
        ACCELERATOR_LABEL: group.slice.accelerator,
        TOPOLOGY_LABEL: group.slice.topology,
        POOL_GROUP_LABEL: group.name,
    }
    spec = {"nodeLabels": labels, "nodeTaints": [dict(TPU_TAINT)]}
    return _flavor(group.name, _tpu_node(group), chips=group.slice.chips_per_host, spec=spec)


def _flavor(name: str, node: NodeCapacity, *, chips: int, spec: dict[str, Any]) -> dict[str, Any]:
    annotations = {NODE_CPU_ANNOTATION: count(node.cpu), NODE_MEMORY_ANNOTATION: gibibytes(node.memory_gib)}
    if chips:
        annotations[NODE_CHIPS_ANNOTATION] = count(chips)
    return _object("ResourceFlavor", {"name": name, "annotations": annotations}, spec=spec)


def _priority_class(name: str, value: int) -> dict[str, Any]:
    return _object("WorkloadPriorityClass", {"name": name}, value=value)


def _cluster_queue(team: Team, quotas: Mapping[str, Quota]) -> dict[str, Any]:
    """The CPU flavor comes first: Kueue tries them in order, and its TPU quota of 0 sends TPU pods on to the next."""
    flavors = [
        {"name": flavor, "resources": [{"name": name, "nominalQuota": quota[name]} for name in RESOURCES]}
        for flavor, quota in quotas.items()
    ]
    spec = {
        "cohortName": COHORT,
        # The API server sets this label itself, so no namespace can claim another team's queue with it.
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team.name}},
        "resourceGroups": [{"coveredResources": list(RESOURCES), "flavors": flavors}],
        # Idle slices that others have paid for come before a later flavor, and a later flavor before stopping a job.
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        # Written out so that a deploy resumes the queues after a destroy that was given up.
        "stopPolicy": "None",
    }
    return _object("ClusterQueue", {"name": team.name}, spec=spec)


def _local_queue(team: Team) -> dict[str, Any]:
    return _object("LocalQueue", {"name": LOCAL_QUEUE, "namespace": team.name}, spec={"clusterQueue": team.name})


def _object(kind: str, metadata: dict[str, Any], **rest: object) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **rest}
