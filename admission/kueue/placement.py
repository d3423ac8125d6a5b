"""Where Kueue puts the pod sets of a workload: flavors one pod set after the other, whom it stops, and how many fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from admission.cluster import ZERO, Admitted, Amounts, Cluster, ClusterQueue
from admission.kueue.flavors import GroupOutcome, assign, usage_of
from admission.kueue.preemption import targets
from admission.workload import PodSet


@dataclass(frozen=True, kw_only=True)
class Placed:
    """One pod set: what each resource group came to, and the resources that none covers."""

    pods: PodSet
    outcomes: tuple[GroupOutcome, ...]
    uncovered: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Placement:
    """All of them. `contested` is what is short, `stopped` the jobs that Kueue stops for it, perhaps none."""

    placed: tuple[Placed, ...]
    given: Amounts
    contested: frozenset[tuple[str, str]]
    stopped: tuple[Admitted, ...]

    @property
    def fits(self) -> bool:
        every = all(outcome.chosen for item in self.placed for outcome in item.outcomes)
        return every and not any(item.uncovered for item in self.placed) and (not self.contested or bool(self.stopped))


def place(cluster: Cluster, queue: ClusterQueue, pod_sets: Sequence[PodSet], *, priority: int) -> Placement:
    given: Amounts = {}
    contested: set[tuple[str, str]] = set()
    placed = []
    for pods in pod_sets:
        outcomes, uncovered = assign(cluster, queue, pods, priority=priority, before=given)
        chosen = [outcome.chosen for outcome in outcomes if outcome.chosen]
        contested |= {(item.flavor, shortage.resource) for item in chosen for shortage in item.shortages}
        for key, number in usage_of(outcomes, pods.total()).items():
            given[key] = given.get(key, ZERO) + number
        placed.append(Placed(pods=pods, outcomes=tuple(outcomes), uncovered=tuple(uncovered)))
    stopped = targets(cluster, queue.name, priority=priority, requests=given, contested=contested) if contested else ()
    return Placement(placed=tuple(placed), given=given, contested=frozenset(contested), stopped=tuple(stopped))


def place_some(cluster: Cluster, queue: ClusterQueue, pods: PodSet, *, priority: int, fewest: int) -> Placement | None:
    """As many of a Job's pods as fit, if that is `fewest` or more (pkg/scheduler, PodSetReducer: the most that fit)."""
    low, high = fewest, pods.count - 1
    best = None
    while low <= high:
        middle = (low + high + 1) // 2
        tried = place(cluster, queue, [replace(pods, pods_per_replica=middle)], priority=priority)
        if tried.fits:
            best, low = tried, middle + 1
        else:
            high = middle - 1
    return best
