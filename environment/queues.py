"""Flavors, queues and priorities as plain Kubernetes objects, with quotas that add up to what exists.

A job of several parts takes one flavor a part. Kueue tries a queue's flavors in their order, and a job that names its
pool group fits only that one; so the order decides where a job goes that would fit several.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from environment import Environment
from environment.capacity import CLUSTER_PODS_CPU, CLUSTER_PODS_GIB, NodeCapacity, node_capacity
from environment.cpu import cpu_machine_type
from environment.fleet import PRIORITIES, CapacityMode, PoolGroup, Team
from environment.names import CPU_FLAVOR, CPU_GROUP, LOCAL_QUEUE, POOL_GROUP_LABEL
from environment.quantity import count, decimal, gibibytes
from environment.quotas import claims_of, lendable, share_out, slices_of_teams

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

# What is paid for anyway comes first, then what is given for as long as it is asked for, then what is given for a time
# (with a request for the whole job before one without), then what Google may take back at any moment.
_CAPACITY_ORDER = (
    CapacityMode.RESERVATION,
    CapacityMode.ON_DEMAND,
    CapacityMode.QUEUED,
    CapacityMode.FLEX_START,
    CapacityMode.SPOT,
)

# https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest
_PROVISIONING_CLASS = "queued-provisioning.gke.io"
_PROVISIONING_CONTROLLER = "kueue.x-k8s.io/provisioning-request"
_QUEUED_TAINT = {"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NoSchedule"}
_LONGEST_RUN_SECONDS = 7 * 24 * 3600  # of Dynamic Workload Scheduler, and its default

Quota = Mapping[str, str]  # resource -> canonical quantity


def queue_objects(environment: Environment) -> tuple[dict[str, Any], ...]:
    """Every queue object of the environment, what others name before what names it.

    Flavors, provisioning configs and checks of queued groups, priority classes, ClusterQueues, LocalQueues. Quotas of
    all teams add up to what the node pools hold at their largest. A team's chips are whole slices.
    """
    teams = environment.teams
    queued = [group for group in environment.groups if group.capacity is CapacityMode.QUEUED]
    return (
        _cpu_flavor(environment),
        *(_tpu_flavor(group) for group in environment.groups),
        *(_provisioning_config(group) for group in queued),
        *(_admission_check(group) for group in queued),
        *(_priority_class(name, value) for name, value in PRIORITIES.items()),
        *_cluster_queues(environment),
        *(_local_queue(team) for team in teams),
    )


def _cpu_quotas(environment: Environment) -> list[Quota]:
    """The CPU pool at its largest, shared out in whole cores and whole GiB."""
    node, nodes = _cpu_node(environment), environment.settings.cpu_max_nodes
    claims = claims_of(environment.teams)
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
    spec: dict[str, Any] = {"nodeLabels": labels, "nodeTaints": [dict(TPU_TAINT)]}
    if group.capacity is CapacityMode.QUEUED:
        # Of all pods only those that a ProvisioningRequest was made for may go there, which are those of this flavor.
        spec["tolerations"] = [{**_QUEUED_TAINT, "operator": "Equal"}]
    return _flavor(group.name, _tpu_node(group), chips=group.slice.chips_per_host, spec=spec)


def _flavor(name: str, node: NodeCapacity, *, chips: int, spec: dict[str, Any]) -> dict[str, Any]:
    annotations = {NODE_CPU_ANNOTATION: count(node.cpu), NODE_MEMORY_ANNOTATION: gibibytes(node.memory_gib)}
    if chips:
        annotations[NODE_CHIPS_ANNOTATION] = count(chips)
    return _object("ResourceFlavor", {"name": name, "annotations": annotations}, spec=spec)


def _priority_class(name: str, value: int) -> dict[str, Any]:
    return _object("WorkloadPriorityClass", {"name": name}, value=value)


def _provisioning_config(group: PoolGroup) -> dict[str, Any]:
    """What Kueue asks the cluster autoscaler for before it starts a job: all hosts at once, and for how long.

    The parameters are those of cluster-toolkit's TPU example (tpu-dws-queues.yaml.tftpl, v1.95) and of GKE's page on
    flex-start; a job may shorten the time with the annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds. Not
    verified on GKE.
    """
    spec = {
        "provisioningClassName": _PROVISIONING_CLASS,
        "managedResources": ["google.com/tpu"],
        "parameters": {
            "tpu-topology": group.slice.topology,
            "maxRunDurationSeconds": str(group.max_run_seconds or _LONGEST_RUN_SECONDS),
        },
        # Keeps the pods on the nodes that were made for them. Kueue leaves it out where GKE does not tell the name.
        "podSetUpdates": {
            "nodeSelector": [
                {
                    "key": "autoscaling.gke.io/provisioning-request",
                    "valueFromProvisioningClassDetail": "ResizeRequestName",
                }
            ]
        },
    }
    return _object("ProvisioningRequestConfig", {"name": _check_name(group)}, spec=spec)


def _admission_check(group: PoolGroup) -> dict[str, Any]:
    parameters = {
        "apiGroup": API_VERSION.partition("/")[0],
        "kind": "ProvisioningRequestConfig",
        "name": _check_name(group),
    }
    spec = {"controllerName": _PROVISIONING_CONTROLLER, "parameters": parameters}
    return _object("AdmissionCheck", {"name": _check_name(group)}, spec=spec)


def _check_name(group: PoolGroup) -> str:
    return f"provision-{group.name}"


def _cluster_queues(environment: Environment) -> list[dict[str, Any]]:
    shared = slices_of_teams(environment.groups, environment.teams)
    queues = []
    for team, cpu_quota in zip(environment.teams, _cpu_quotas(environment), strict=True):
        groups = _groups_of(team, environment)
        flavors = [
            # First: its TPU quota of 0 sends TPU pods on to the next, and the taint keeps other pods away from those.
            _flavor_quotas(CPU_FLAVOR, cpu_quota),
            *(_tpu_flavor_quotas(team, group, shared[group.name][team.name]) for group in groups),
        ]
        queues.append(_cluster_queue(team, groups, flavors, weighed=environment.fair_sharing))
    return queues


def _groups_of(team: Team, environment: Environment) -> list[PoolGroup]:
    """The pool groups of a team, in the order in which its jobs try them; alike ones in that of fleet.yaml."""
    allowed = (group for group in environment.groups if group.name in team.pools)
    return sorted(allowed, key=lambda group: _CAPACITY_ORDER.index(group.capacity))


def _tpu_flavor_quotas(team: Team, group: PoolGroup, slices: int) -> dict[str, Any]:
    limits = {}
    if team.borrowing_limit is not None:
        limits["borrowingLimit"] = _tpu_quota(group, team.borrowing_limit)
    if team.lending_limit is not None:
        # More than the team has is refused by Kueue.
        limits["lendingLimit"] = _tpu_quota(group, lendable(team, slices))
    return _flavor_quotas(group.name, _tpu_quota(group, slices), **limits)


def _flavor_quotas(flavor: str, nominal: Quota, **limits: Quota) -> dict[str, Any]:
    quotas = {"nominalQuota": nominal, **limits}
    return {
        "name": flavor,
        "resources": [
            {"name": resource, **{kind: quota[resource] for kind, quota in quotas.items()}} for resource in RESOURCES
        ],
    }


def _cluster_queue(
    team: Team, groups: list[PoolGroup], flavors: list[dict[str, Any]], *, weighed: bool
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "cohortName": COHORT,
        # The API server sets this label itself, so no namespace can claim another team's queue with it.
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team.name}},
        "resourceGroups": [{"coveredResources": list(RESOURCES), "flavors": flavors}],
        # Idle slices that others have paid for come before a later flavor, and a later flavor before stopping a job.
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        # What is a team's own it gets back from anybody; what is nobody's own no job is stopped for, whatever its
        # priority (borrowWithinCohort stays at Never).
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        # Written out so that a deploy resumes the queues after a destroy that was given up.
        "stopPolicy": "None",
    }
    checks = [
        {"name": _check_name(group), "onFlavors": [group.name]}
        for group in groups
        if group.capacity is CapacityMode.QUEUED
    ]
    if checks:
        spec["admissionChecksStrategy"] = {"admissionChecks": checks}
    if weighed:
        spec["fairSharing"] = {"weight": decimal(team.share)}
    return _object("ClusterQueue", {"name": team.name}, spec=spec)


def _local_queue(team: Team) -> dict[str, Any]:
    return _object("LocalQueue", {"name": LOCAL_QUEUE, "namespace": team.name}, spec={"clusterQueue": team.name})


def _object(kind: str, metadata: dict[str, Any], **rest: object) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **rest}
