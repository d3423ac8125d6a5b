"""Flavors, queues and priorities as plain Kubernetes objects, with quotas that add up to what exists.

A queue has two resource groups. Of chips there is a flavor a pool group: Kueue tries them in their order, and pods that
name their pool group fit only that one; so the order decides where pods go that would fit several. Of cores and memory
there is one flavor for all nodes, so only pods that ask for chips are ever sent to TPU nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from environment import Environment
from environment.fleet import xpk
from environment.fleet.model import LONGEST_RUN_HOURS, LONGEST_WAIT_HOURS, PRIORITIES, CapacityMode, PoolGroup, Team
from environment.fleet.node_selector import node_selector
from environment.fleet.quotas import lendable, slices_of_teams
from environment.kubernetes.cpu_memory_quotas import COMPUTE, Quota, compute_quotas, cpu_node, cpu_pool, tpu_node
from environment.kubernetes.team_objects import object_quota
from environment.names import CPU_FLAVOR
from environment.node_capacity import NodeCapacity
from vocabulary.keys import (
    AUTOPILOT,
    CLUSTER_MODE_ANNOTATION,
    LOCAL_QUEUE,
    NODE_CHIPS_ANNOTATION,
    NODE_CPU_ANNOTATION,
    NODE_MEMORY_ANNOTATION,
    POOL_CPU_ANNOTATION,
    POOL_MEMORY_ANNOTATION,
    QUEUED_TAINT,
    TPU,
)
from vocabulary.quantity import count, decimal, gibibytes
from vocabulary.team_rules import POD_PRIORITIES

API_VERSION = "kueue.x-k8s.io/v1beta2"
COHORT = "fleet"  # all teams: what one does not use, another may borrow

_TPU_TAINT = {"key": TPU, "value": "present", "effect": "NoSchedule"}  # GKE puts it on every TPU node


# What is paid for anyway comes first, then what is given for as long as it is asked for, then what is given for a time
# (with a request for the whole job before one without), then what Google may take back at any moment.
_CAPACITY_ORDER = (
    CapacityMode.RESERVATION,
    CapacityMode.ON_DEMAND,
    CapacityMode.QUEUED,
    CapacityMode.FLEX_START,
    CapacityMode.SPOT,
)

# Pods of xpk name one of these PriorityClasses, by default "medium", and cannot be created without it (xpk 1.13.1,
# commands/workload.py). Kueue takes the value for the priority of a job without a label; nodes stop nobody for it.
_POD_PRIORITIES = dict(zip(POD_PRIORITIES, PRIORITIES.values(), strict=True))


# https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest
_PROVISIONING_CLASS = "queued-provisioning.gke.io"
_PROVISIONING_CONTROLLER = "kueue.x-k8s.io/provisioning-request"
# Seconds until a request that failed is made again: twice the last ones, up to the longest. These are Kueue's defaults.
_FIRST_BACKOFF, _LONGEST_BACKOFF = 60, 1800
_QUEUED_TAINT = {"key": QUEUED_TAINT, "value": "true", "effect": "NoSchedule"}


def queue_objects(environment: Environment) -> tuple[dict[str, Any], ...]:
    """Every queue object of the environment, what others name before what names it.

    Flavors, provisioning configs and checks of queued groups, priority classes, ClusterQueues, LocalQueues, and the
    quota of objects in each team's namespace. Quotas of all teams add up to what the node pools hold at their largest.
    A team's chips are whole slices. With XPK_COMPATIBILITY, a further LocalQueue of each team and the ConfigMaps that
    xpk reads.
    """
    teams = environment.teams
    queued = [group for group in environment.groups if group.capacity is CapacityMode.QUEUED]
    return (
        _cpu_flavor(environment),
        *(_tpu_flavor(group, autopilot=environment.settings.autopilot) for group in environment.groups),
        *(_provisioning_config(group) for group in queued),
        *(_admission_check(group) for group in queued),
        *(_priority_class(name, value) for name, value in PRIORITIES.items()),
        *(_pod_priority_class(name, value) for name, value in _POD_PRIORITIES.items()),
        *_cluster_queues(environment),
        *(_local_queue(team, LOCAL_QUEUE) for team in teams),
        *(object_quota(environment, team) for team in teams),
        *(_xpk_objects(environment) if environment.settings.xpk_compatibility else ()),
    )


def _cpu_flavor(environment: Environment) -> dict[str, Any]:
    """No labels and no taints: its cores and memory are those of all nodes, and pods with chips ask for both.

    The empty labels are written out: server-side apply sets a spec to null whose last field is taken out of the
    manifest, which the API server then refuses (tried on Kubernetes 1.34.1, with the labels that this flavor once had).
    """
    spec: dict[str, Any] = {"nodeLabels": {}}
    if environment.settings.autopilot:
        # Nodes as large as pods need: neither one nor all of them have a size that a pod could be too large for.
        return _object(
            "ResourceFlavor", {"name": CPU_FLAVOR, "annotations": {CLUSTER_MODE_ANNOTATION: AUTOPILOT}}, spec=spec
        )
    pool = cpu_pool(environment)
    annotations = {POOL_CPU_ANNOTATION: pool["cpu"], POOL_MEMORY_ANNOTATION: pool["memory"]}
    return _flavor(CPU_FLAVOR, cpu_node(environment), annotations, spec=spec)


def _tpu_flavor(group: PoolGroup, *, autopilot: bool) -> dict[str, Any]:
    labels = node_selector(group, autopilot=autopilot)
    # Kueue gives the pods what a flavor tolerates. Taints of a flavor it would hold against the pod template instead,
    # and manifests as Google and JobSet write them tolerate nothing.
    spec = {"nodeLabels": labels, "tolerations": [{**taint, "operator": "Equal"} for taint in taints_of(group)]}
    return _flavor(group.name, tpu_node(group), {NODE_CHIPS_ANNOTATION: count(group.slice.chips_per_host)}, spec=spec)


def taints_of(group: PoolGroup) -> list[dict[str, str]]:
    """The taints of its nodes. Those of a queued group take only pods with a ProvisioningRequest."""
    return [_TPU_TAINT, _QUEUED_TAINT] if group.capacity is CapacityMode.QUEUED else [_TPU_TAINT]


def _flavor(name: str, node: NodeCapacity, annotations: dict[str, str], *, spec: dict[str, Any]) -> dict[str, Any]:
    of_node = {NODE_CPU_ANNOTATION: count(node.cpu), NODE_MEMORY_ANNOTATION: gibibytes(node.memory_gib)}
    return _object("ResourceFlavor", {"name": name, "annotations": {**of_node, **annotations}}, spec=spec)


def _priority_class(name: str, value: int) -> dict[str, Any]:
    return _object("WorkloadPriorityClass", {"name": name}, value=value)


def _pod_priority_class(name: str, value: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "Never",
    }


def _provisioning_config(group: PoolGroup) -> dict[str, Any]:
    """What Kueue asks the cluster autoscaler for before it starts a job: all hosts at once, and for how long.

    The parameters are those of cluster-toolkit's TPU example (tpu-dws-queues.yaml.tftpl, v1.95) and of GKE's page on
    flex-start; a job may shorten the time with the annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds. Not
    verified on GKE.
    """
    spec = {
        "provisioningClassName": _PROVISIONING_CLASS,
        "managedResources": [TPU],
        "parameters": {
            "tpu-topology": group.slice.topology,
            "maxRunDurationSeconds": str(group.max_run_seconds or LONGEST_RUN_HOURS * 3600),
        },
        # Keeps the pods on the nodes that GKE creates for them. Kueue leaves it out where GKE does not report the name.
        "podSetUpdates": {
            "nodeSelector": [
                {
                    "key": "autoscaling.gke.io/provisioning-request",
                    "valueFromProvisioningClassDetail": "ResizeRequestName",
                }
            ]
        },
        # After its last try Kueue deactivates a job, by default after three: within minutes where there is no capacity.
        "retryStrategy": {
            "backoffLimitCount": _tries(LONGEST_WAIT_HOURS * 3600),
            "backoffBaseSeconds": _FIRST_BACKOFF,
            "backoffMaxSeconds": _LONGEST_BACKOFF,
        },
    }
    return _object("ProvisioningRequestConfig", {"name": _check_name(group)}, spec=spec)


def _tries(seconds: int) -> int:
    """How often a request is made again, until the times between have taken so long."""
    tries, backoff = 0, _FIRST_BACKOFF
    while seconds > 0:
        tries, seconds, backoff = tries + 1, seconds - backoff, min(2 * backoff, _LONGEST_BACKOFF)
    return tries


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
    compute = compute_quotas(environment)
    queues = []
    for team in environment.teams:
        groups = _groups_of(team, environment)
        chips = [
            _flavor_quotas(group.name, {TPU: _chips(team, group, shared[group.name][team.name])}) for group in groups
        ]
        resource_groups = [
            {"coveredResources": [TPU], "flavors": chips},
            {"coveredResources": list(COMPUTE), "flavors": [_flavor_quotas(CPU_FLAVOR, compute[team.name])]},
        ]
        queues.append(
            _cluster_queue(
                team,
                groups,
                resource_groups,
                weighed=environment.fair_sharing,
                held=environment.settings.hold_queues,
            )
        )
    return queues


def _groups_of(team: Team, environment: Environment) -> list[PoolGroup]:
    """The pool groups of a team, in the order in which its jobs try them; alike ones in that of fleet.yaml."""
    allowed = (group for group in environment.groups if group.name in team.pools)
    return sorted(allowed, key=lambda group: _CAPACITY_ORDER.index(group.capacity))


def _chips(team: Team, group: PoolGroup, slices: int) -> Quota:
    """The chips of whole slices."""
    of = {"nominalQuota": slices}
    if team.borrowing_limit is not None:
        of["borrowingLimit"] = team.borrowing_limit
    if team.lending_limit is not None:
        of["lendingLimit"] = lendable(team, slices)  # more than the team has is refused by Kueue
    return {kind: count(number * group.slice.chips) for kind, number in of.items()}


def _flavor_quotas(flavor: str, quotas: dict[str, Quota]) -> dict[str, Any]:
    return {"name": flavor, "resources": [{"name": resource, **quota} for resource, quota in quotas.items()]}


def _cluster_queue(
    team: Team, groups: list[PoolGroup], resource_groups: list[dict[str, Any]], *, weighed: bool, held: bool
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "cohortName": COHORT,
        # The API server sets this label itself, so no namespace can claim another team's queue with it.
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team.name}},
        "resourceGroups": resource_groups,
        # Idle slices that others have paid for come before a later flavor, and a later flavor before stopping a job.
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        # A team gets back its own slices from every team. For a slice that a team borrows no other team's job is
        # stopped, not even one of lower priority (borrowWithinCohort stays at Never).
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        # Written out so that a deploy resumes the queues after a destroy that was interrupted. All are held or none:
        # Kueue does not count the quota of one that is held, nor what its jobs have borrowed.
        # https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/cache/scheduler/snapshot.go
        "stopPolicy": "Hold" if held else "None",
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


def _local_queue(team: Team, name: str) -> dict[str, Any]:
    return _object("LocalQueue", {"name": name, "namespace": team.name}, spec={"clusterQueue": team.name})


def _xpk_objects(environment: Environment) -> Iterator[dict[str, Any]]:
    for team in environment.teams:
        yield _local_queue(team, xpk.LOCAL_QUEUE)
    groups = environment.groups
    for kind, data in (("resources", xpk.resources(groups)), ("metadata", xpk.metadata(groups))):
        name = f"{environment.names.cluster}-{kind}-configmap"
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": xpk.NAMESPACE},
            "data": data,
        }


def _object(kind: str, metadata: dict[str, Any], **rest: object) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **rest}
