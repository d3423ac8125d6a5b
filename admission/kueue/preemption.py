"""Which admitted workloads Kueue would stop to make room: its classical preemption, for one flat cohort.

As pkg/scheduler/preemption does it in 0.19.2 with `borrowWithinCohort` Never, which is the default.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from admission.cluster import Admitted, Cluster
from admission.result import FlavorResource

Requests = Mapping[FlavorResource, Fraction]


def targets(
    cluster: Cluster, queue: str, *, priority: int, requests: Requests, contested: Collection[FlavorResource]
) -> tuple[Admitted, ...]:
    """The workloads to stop, or none if stopping even all candidates does not make room."""
    own = _own_candidates(cluster, queue, priority, contested)
    others = _other_candidates(cluster, queue, priority, contested)
    # With its own quota covering the whole request, a queue takes back what others borrow; otherwise it may do so
    # only as far as it does not borrow itself.
    entitled = all(
        cluster.used(queue, key) + item <= cluster.quota(queue, key).nominal for key, item in requests.items()
    )
    below = all(cluster.used(queue, key) < cluster.quota(queue, key).nominal for key in contested)
    both = [True, False] if entitled else [False, True]
    for may_borrow in both if others and below else [True]:
        from_others = others if entitled or not may_borrow else []
        stopped = _enough(cluster, queue, [*from_others, *own], requests, contested, may_borrow=may_borrow)
        if stopped:
            return stopped
    return ()


def _own_candidates(
    cluster: Cluster, queue: str, priority: int, contested: Collection[FlavorResource]
) -> list[Admitted]:
    if cluster.cluster_queues[queue].within_cluster_queue == "Never":
        return []
    # A new workload is never older than one of the same priority that runs, so both other policies mean the same.
    return _ordered(
        item
        for item in cluster.admitted
        if item.cluster_queue == queue and item.priority < priority and _uses(item, contested)
    )


def _other_candidates(
    cluster: Cluster, queue: str, priority: int, contested: Collection[FlavorResource]
) -> list[Admitted]:
    policy = cluster.cluster_queues[queue].reclaim_within_cohort
    if policy == "Never":
        return []
    borrowers = {name for name in cluster.members(queue) if name != queue and cluster.over_nominal(name, contested)}
    return _ordered(
        item
        for item in cluster.admitted
        if item.cluster_queue in borrowers and _uses(item, contested) and (policy == "Any" or item.priority < priority)
    )


def _ordered(candidates: Iterable[Admitted]) -> list[Admitted]:
    """Lowest priority first, and of those the newest."""
    newest_first = sorted(candidates, key=lambda item: item.since, reverse=True)
    return sorted(newest_first, key=lambda item: item.priority)


def _uses(workload: Admitted, contested: Collection[FlavorResource]) -> bool:
    return any(workload.usage.get(key) for key in contested)


def _enough(
    cluster: Cluster,
    queue: str,
    candidates: list[Admitted],
    requests: Requests,
    contested: Collection[FlavorResource],
    *,
    may_borrow: bool,
) -> tuple[Admitted, ...]:
    """Stops candidates in order until there is room, then lets go again of those that were not needed."""
    stopped: list[Admitted] = []
    for candidate in candidates:
        now = without(cluster, stopped)
        if candidate.cluster_queue != queue and not now.over_nominal(candidate.cluster_queue, contested):
            continue
        stopped.append(candidate)
        if _fits(without(cluster, stopped), queue, requests, may_borrow=may_borrow):
            break
    else:
        return ()
    for candidate in reversed(stopped[:-1]):
        spared = [item for item in stopped if item is not candidate]
        if _fits(without(cluster, spared), queue, requests, may_borrow=may_borrow):
            stopped = spared
    return tuple(stopped)


def without(cluster: Cluster, stopped: Collection[Admitted]) -> Cluster:
    """The cluster once these workloads have stopped."""
    names = {item.name for item in stopped}
    return replace(cluster, admitted=tuple(item for item in cluster.admitted if item.name not in names))


def _fits(cluster: Cluster, queue: str, requests: Requests, *, may_borrow: bool) -> bool:
    return all(
        number <= cluster.available(queue, key) and (may_borrow or not cluster.borrowed(queue, key, number))
        for key, number in requests.items()
    )
