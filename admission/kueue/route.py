"""From a workload to its ClusterQueue: the queue label, the LocalQueue, the namespace, and what is on hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from admission.cluster import Cluster, ClusterQueue
from admission.kueue.flavors import selects
from admission.result import Reason, Verdict, never, waits
from admission.workload import Workload
from vocabulary.keys import LOCAL_QUEUE, QUEUE_LABEL
from vocabulary.stop_policy import stopped

NAMESPACE_LABEL = "kubernetes.io/metadata.name"  # the API server sets it on every namespace


@dataclass(frozen=True, kw_only=True)
class Route:
    """Where a workload goes. Without a ClusterQueue the reasons say why.

    `assumed`: the LocalQueue is not there, and the rest is judged as in the namespace's `default`, or in its only one.
    """

    local_queue: str
    cluster_queue: ClusterQueue | None
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    assumed: bool = False


def route(cluster: Cluster, workload: Workload) -> Route:
    """Kueue gives a job without a queue label to the LocalQueue `default` of its namespace, if there is one."""
    namespace = workload.namespace
    name = workload.labels.get(QUEUE_LABEL) or LOCAL_QUEUE
    here = sorted(queue for where, queue in cluster.local_queues if where == namespace)
    local = cluster.local_queues.get((namespace, name))
    if local is None:
        unknown = _no_local_queue(cluster, workload, name, here)
        instead = LOCAL_QUEUE if LOCAL_QUEUE in here else here[0] if len(here) == 1 else ""
        if not instead:
            return Route(local_queue=name, cluster_queue=None, reasons=(unknown,))
        way = _to(cluster, namespace, instead)
        lasting = [item for item in way.reasons if item.verdict != Verdict.WAITS and item.code != unknown.code]
        return replace(way, local_queue=name, reasons=(unknown, *lasting), assumed=True)
    way = _to(cluster, namespace, name)
    unlabelled = way.cluster_queue is not None and QUEUE_LABEL not in workload.labels
    return replace(way, notes=(f"no label {QUEUE_LABEL}: it goes to LocalQueue {name}",)) if unlabelled else way


def _to(cluster: Cluster, namespace: str, name: str) -> Route:
    """By a LocalQueue that is there."""
    local = cluster.local_queues[namespace, name]
    queue = cluster.cluster_queues.get(local.cluster_queue)
    if queue is None:
        what = f"LocalQueue {namespace}/{name} leads to ClusterQueue '{local.cluster_queue}', which does not exist"
        reason = never("no-cluster-queue", name, what, "deploy the queues again")
        return Route(local_queue=name, cluster_queue=None, reasons=(reason,))
    missing = [flavor for _, flavors in queue.resource_groups for flavor in flavors if flavor not in cluster.flavors]
    if missing:
        what = f"ClusterQueue {queue.name} is inactive: there is no ResourceFlavor '{missing[0]}'"
        return Route(
            local_queue=name,
            cluster_queue=None,
            reasons=(never("missing-flavor", queue.name, what, "deploy the queues again"),),
        )
    return Route(
        local_queue=name,
        cluster_queue=queue,
        reasons=(*_namespace(cluster, queue, namespace), *_holds(namespace, name, local.stop_policy, queue)),
    )


def _no_local_queue(cluster: Cluster, workload: Workload, name: str, here: list[str]) -> Reason:
    namespace = workload.namespace
    others = sorted({f"{where}/{queue}" for where, queue in cluster.local_queues})
    if cluster.namespaces and namespace not in cluster.namespaces:
        return never(
            "no-namespace", "metadata.namespace", f"there is no namespace '{namespace}'", f"queues are {_some(others)}"
        )
    if QUEUE_LABEL not in workload.labels:
        return never(
            "no-queue",
            "metadata.labels",
            f"names no queue, and namespace {namespace} has no LocalQueue '{name}', so Kueue never admits it",
            f"set the label {QUEUE_LABEL} to one of {_some(here)}" if here else f"submit to a queue: {_some(others)}",
        )
    return never(
        "unknown-queue",
        QUEUE_LABEL,
        f"namespace {namespace} has no LocalQueue '{name}'",
        f"it has {_some(here)}" if here else f"queues are {_some(others)}",
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "") if names else "none"


def _namespace(cluster: Cluster, queue: ClusterQueue, namespace: str) -> Iterator[Reason]:
    labels = {**cluster.namespaces.get(namespace, {}), NAMESPACE_LABEL: namespace}
    if cluster.namespaces and namespace not in cluster.namespaces:
        yield never("no-namespace", "metadata.namespace", f"there is no namespace '{namespace}'", "create it")
    elif not selects(queue.selector, labels):
        yield never(
            "namespace-not-selected",
            "metadata.namespace",
            f"ClusterQueue {queue.name} does not take jobs from namespace {namespace}",
            "submit to the team's own namespace, or let an administrator add this one to the namespaceSelector",
        )


def _holds(namespace: str, name: str, local_policy: str, queue: ClusterQueue) -> Iterator[Reason]:
    for what, policy in (
        (f"LocalQueue {namespace}/{name}", local_policy),
        (f"ClusterQueue {queue.name}", queue.stop_policy),
    ):
        if policy != "None":
            why = f"{what} {stopped(policy)}: nothing starts until an administrator resumes it"
            yield waits("queue-stopped", "", why, "a deploy resumes it, unless HOLD_QUEUES=true")
