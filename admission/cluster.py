"""The queue objects of a cluster, read once: flavors, queues, quotas, and what is in use. The arithmetic is Kueue's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from admission.boundary import Boundary, boundary_of
from admission.result import FlavorResource
from admission.workload import Field
from vocabulary.keys import (
    ACCELERATOR_LABEL,
    AUTOPILOT,
    CLUSTER_MODE_ANNOTATION,
    NODE_CHIPS_ANNOTATION,
    NODE_CPU_ANNOTATION,
    NODE_MEMORY_ANNOTATION,
    POOL_CPU_ANNOTATION,
    POOL_MEMORY_ANNOTATION,
    TOPOLOGY_LABEL,
    TPU,
)

_OF_NODE = {"cpu": NODE_CPU_ANNOTATION, "memory": NODE_MEMORY_ANNOTATION, TPU: NODE_CHIPS_ANNOTATION}
_OF_POOL = {"cpu": POOL_CPU_ANNOTATION, "memory": POOL_MEMORY_ANNOTATION}

ZERO = Fraction(0)
Amounts = dict[FlavorResource, Fraction]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A slice, as its flavor's labels and annotations describe it."""

    accelerator: str
    topology: str
    hosts: int
    chips_per_host: int

    @property
    def chips(self) -> int:
        return self.hosts * self.chips_per_host

    def __str__(self) -> str:
        return f"{self.accelerator} {self.topology}"


@dataclass(frozen=True, kw_only=True)
class Flavor:
    name: str
    labels: Mapping[str, str]
    taints: tuple[Field, ...]
    tolerations: tuple[Field, ...]
    node: Mapping[str, Fraction]  # what one node gives to a pod, where the flavor says so
    pool: Mapping[str, Fraction] = field(default_factory=dict)  # what all nodes without TPUs give, where it says so
    topology: str = ""  # by which Kueue schedules, if any

    @property
    def shape(self) -> Shape | None:
        """The slice of its nodes; None where labels and annotations do not say the topology and the chips per host."""
        accelerator, topology = self.labels.get(ACCELERATOR_LABEL, ""), self.labels.get(TOPOLOGY_LABEL, "")
        sides = topology.split("x")
        if not accelerator or not all(side.isascii() and side.isdigit() for side in sides):
            return None
        chips = math.prod(map(int, sides))
        on_host = int(self.node.get(TPU, ZERO))
        if not on_host or not chips or chips % on_host:
            return None
        return Shape(accelerator=accelerator, topology=topology, hosts=chips // on_host, chips_per_host=on_host)


@dataclass(frozen=True, kw_only=True)
class Quota:
    nominal: Fraction
    borrowing_limit: Fraction | None
    lending_limit: Fraction | None

    @property
    def local(self) -> Fraction:
        """What is never lent to the cohort."""
        return ZERO if self.lending_limit is None else max(ZERO, self.nominal - self.lending_limit)


@dataclass(frozen=True, kw_only=True)
class ClusterQueue:
    name: str
    cohort: str
    selector: Field
    resource_groups: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]  # (resources, flavors in order)
    quotas: Mapping[FlavorResource, Quota]
    stop_policy: str
    when_can_borrow: str
    when_can_preempt: str
    preference: str
    within_cluster_queue: str
    reclaim_within_cohort: str
    admission_checks: tuple[tuple[str, tuple[str, ...]], ...]  # (name, flavors or none for all)

    @property
    def flavors(self) -> list[str]:
        return [name for _, flavors in self.resource_groups for name in flavors]


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """A Workload that holds quota."""

    name: str
    cluster_queue: str
    priority: int
    since: str
    usage: Mapping[FlavorResource, Fraction]
    without_chips: Mapping[str, Fraction]  # resource -> what its pods ask for that need no TPU node


@dataclass(frozen=True, kw_only=True)
class Node:
    labels: Mapping[str, str]
    taints: tuple[Field, ...]


@dataclass(frozen=True, kw_only=True)
class LocalQueue:
    cluster_queue: str
    stop_policy: str


@dataclass(kw_only=True)
class Cluster:
    flavors: dict[str, Flavor] = field(default_factory=dict)
    cluster_queues: dict[str, ClusterQueue] = field(default_factory=dict)
    local_queues: dict[tuple[str, str], LocalQueue] = field(default_factory=dict)  # by namespace and name
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)  # labels by name; empty if none were given
    boundaries: dict[str, Boundary] = field(default_factory=dict)  # by namespace
    default_requests: dict[str, dict[str, str]] = field(default_factory=dict)  # of a container, by namespace
    service_accounts: dict[str, set[str]] = field(default_factory=dict)  # by namespace; those that were given
    priorities: dict[str, int] = field(default_factory=dict)
    pod_priorities: dict[str, int] = field(default_factory=dict)
    workloads: set[tuple[str, str]] = field(default_factory=set)  # namespace and name
    nodes: tuple[Node, ...] = ()  # those that were given
    admitted: tuple[Admitted, ...] = ()
    autopilot: bool = False

    def nodes_of(self, flavor: Flavor) -> list[Node]:
        """The nodes that have this flavor's labels."""
        return [node for node in self.nodes if flavor.labels.items() <= node.labels.items()]

    def quota(self, queue: str, key: FlavorResource) -> Quota:
        none = Quota(nominal=ZERO, borrowing_limit=None, lending_limit=None)
        return self.cluster_queues[queue].quotas.get(key, none)

    def used(self, queue: str, key: FlavorResource) -> Fraction:
        return sum((item.usage.get(key, ZERO) for item in self.admitted if item.cluster_queue == queue), ZERO)

    def members(self, queue: str) -> list[str]:
        """The ClusterQueues of the same cohort, itself included."""
        cohort = self.cluster_queues[queue].cohort
        return [
            name for name, item in self.cluster_queues.items() if name == queue or (cohort and item.cohort == cohort)
        ]

    def available(self, queue: str, key: FlavorResource) -> Fraction:
        """What is free for this queue now, with what it may borrow (pkg/cache/scheduler/resource_node.go)."""
        quota, used = self.quota(queue, key), self.used(queue, key)
        if not self.cluster_queues[queue].cohort:
            return max(ZERO, quota.nominal - used)
        shared = self._lendable(queue, key) - sum(
            (max(ZERO, self.used(item, key) - self.quota(item, key).local) for item in self.members(queue)), ZERO
        )
        if quota.borrowing_limit is not None:
            in_cohort = quota.nominal - quota.local
            shared = min(in_cohort - max(ZERO, used - quota.local) + quota.borrowing_limit, shared)
        return max(ZERO, max(ZERO, quota.local - used) + shared)

    def potential(self, queue: str, key: FlavorResource) -> Fraction:
        """The most this queue could ever have, with no other job there (potentialAvailable)."""
        quota = self.quota(queue, key)
        if not self.cluster_queues[queue].cohort:
            return quota.nominal
        most = quota.local + self._lendable(queue, key)
        return most if quota.borrowing_limit is None else min(quota.nominal + quota.borrowing_limit, most)

    def borrowed(self, queue: str, key: FlavorResource, more: Fraction) -> Fraction:
        """How much of `more` is beyond the queue's own quota."""
        beyond = self.used(queue, key) + more - self.quota(queue, key).nominal
        return max(ZERO, min(more, beyond)) if self.cluster_queues[queue].cohort else ZERO

    def over_nominal(self, queue: str, keys: Iterable[FlavorResource]) -> bool:
        return any(self.used(queue, key) > self.quota(queue, key).nominal for key in keys)

    def _lendable(self, queue: str, key: FlavorResource) -> Fraction:
        quotas = (self.quota(item, key) for item in self.members(queue))
        return sum((quota.nominal - quota.local for quota in quotas), ZERO)


def read_cluster(objects: Iterable[Mapping[str, Any]]) -> Cluster:
    """The cluster of these objects. Kinds that have no part in admission are ignored."""
    cluster = Cluster()
    admitted, nodes = [], []
    for item in objects:
        whole = Field(item)
        kind, name = whole.get("kind").text(), whole.get("metadata", "name").text()
        spec = whole.get("spec")
        if kind == "ResourceFlavor":
            cluster.flavors[name] = _flavor(name, whole)
            mode = whole.get("metadata", "annotations").get(CLUSTER_MODE_ANNOTATION).text()
            cluster.autopilot = cluster.autopilot or mode == AUTOPILOT
        elif kind == "ClusterQueue":
            cluster.cluster_queues[name] = _cluster_queue(name, spec)
        elif kind == "LocalQueue":
            cluster.local_queues[whole.get("metadata", "namespace").text(), name] = LocalQueue(
                cluster_queue=spec.get("clusterQueue").text(), stop_policy=spec.get("stopPolicy").text("None")
            )
        elif kind == "Namespace":
            cluster.namespaces[name] = whole.get("metadata", "labels").texts()
            cluster.boundaries[name] = boundary_of(item)
        elif kind == "LimitRange":
            defaults = cluster.default_requests.setdefault(whole.get("metadata", "namespace").text(), {})
            for limit in spec.get("limits").items():
                if limit.get("type").text() == "Container":
                    defaults.update(limit.get("defaultRequest").texts())
        elif kind == "ServiceAccount":
            namespace = whole.get("metadata", "namespace").text()
            cluster.service_accounts.setdefault(namespace, set()).add(name)
        elif kind == "WorkloadPriorityClass":
            cluster.priorities[name] = whole.get("value").number(0)
        elif kind == "PriorityClass":
            cluster.pod_priorities[name] = whole.get("value").number(0)
        elif kind == "Node":
            labels, taints = whole.get("metadata", "labels").texts(), spec.get("taints").items()
            nodes.append(Node(labels=labels, taints=tuple(taints)))
        elif kind == "Workload":
            cluster.workloads.add((whole.get("metadata", "namespace").text(), name))
            if holder := _admitted(name, whole):
                admitted.append(holder)
    cluster.nodes = tuple(nodes)
    cluster.admitted = tuple(admitted)
    return cluster


def _flavor(name: str, whole: Field) -> Flavor:
    spec = whole.get("spec")
    return Flavor(
        name=name,
        labels=spec.get("nodeLabels").texts(),
        taints=tuple(spec.get("nodeTaints").items()),
        tolerations=tuple(spec.get("tolerations").items()),
        node=_annotated(whole, _OF_NODE),
        pool=_annotated(whole, _OF_POOL),
        topology=spec.get("topologyName").text(),
    )


def _annotated(whole: Field, keys: Mapping[str, str]) -> dict[str, Fraction]:
    """Resource -> the quantity in the annotation with this key, where there is one."""
    annotations = whole.get("metadata", "annotations")
    amounts = {resource: annotations.get(key).quantity() for resource, key in keys.items()}
    return {resource: amount for resource, amount in amounts.items() if amount is not None}


def _cluster_queue(name: str, spec: Field) -> ClusterQueue:
    groups, quotas = [], {}
    for group in spec.get("resourceGroups").items():
        flavors = group.get("flavors").items()
        for flavor in flavors:
            for resource in flavor.get("resources").items():
                key = flavor.get("name").text(), resource.get("name").text()
                quotas[key] = Quota(
                    nominal=resource.get("nominalQuota").quantity() or ZERO,
                    borrowing_limit=resource.get("borrowingLimit").quantity(),
                    lending_limit=resource.get("lendingLimit").quantity(),
                )
        resources = tuple(item.text() for item in group.get("coveredResources").items())
        groups.append((resources, tuple(flavor.get("name").text() for flavor in flavors)))
    fungibility, preemption = spec.get("flavorFungibility"), spec.get("preemption")
    checks = spec.get("admissionChecksStrategy", "admissionChecks").items()
    return ClusterQueue(
        name=name,
        cohort=spec.get("cohortName").text(),
        selector=spec.get("namespaceSelector"),
        resource_groups=tuple(groups),
        quotas=quotas,
        stop_policy=spec.get("stopPolicy").text("None"),
        when_can_borrow=fungibility.get("whenCanBorrow").text("MayStopSearch"),
        when_can_preempt=fungibility.get("whenCanPreempt").text("TryNextFlavor"),
        preference=fungibility.get("preference").text("BorrowingOverPreemption"),
        within_cluster_queue=preemption.get("withinClusterQueue").text("Never"),
        reclaim_within_cohort=preemption.get("reclaimWithinCohort").text("Never"),
        admission_checks=tuple(
            (check.get("name").text(), tuple(item.text() for item in check.get("onFlavors").items()))
            for check in checks
        ),
    )


def _admitted(name: str, whole: Field) -> Admitted | None:
    """The quota that a Kueue Workload holds: from `status.admission` until it is finished."""
    status = whole.get("status")
    conditions = {item.get("type").text(): item for item in status.get("conditions").items()}
    finished = conditions.get("Finished")
    admission = status.get("admission")
    if admission.value is None or (finished and finished.get("status").text() == "True"):
        return None
    usage: Amounts = {}
    without_chips: dict[str, Fraction] = {}
    for pod_set in admission.get("podSetAssignments").items():
        amounts = pod_set.get("resourceUsage").quantities()
        for resource, flavor in pod_set.get("flavors").texts().items():
            key = (flavor, resource)
            usage[key] = usage.get(key, ZERO) + amounts.get(resource, ZERO)
        for resource, number in amounts.items() if not amounts.get(TPU) else ():
            without_chips[resource] = without_chips.get(resource, ZERO) + number
    reserved = conditions.get("QuotaReserved")
    namespace = whole.get("metadata", "namespace").text()
    return Admitted(
        name=f"{namespace}/{name}",
        cluster_queue=admission.get("clusterQueue").text(),
        priority=whole.get("spec", "priority").number(0),
        since=reserved.get("lastTransitionTime").text() if reserved else "",
        usage=usage,
        without_chips=without_chips,
    )
