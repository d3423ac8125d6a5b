"""Kueue's flavor assignment: flavors in order, by labels, taints and quota (pkg/scheduler/flavorassigner, 0.19.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction

from admission.cluster import ZERO, Amounts, Cluster, ClusterQueue, Flavor
from admission.kueue.preemption import targets, without
from admission.result import FlavorResource
from admission.workload import Field, PodSet
from vocabulary.keys import TPU


class Mode(IntEnum):
    """How well a flavor suits, from worst to best."""

    NO_FIT = 0
    NO_CANDIDATES = 1  # preemption would be allowed, but there is no job to stop
    PREEMPT = 2  # by stopping jobs of the same queue
    RECLAIM = 3  # by taking back what other queues borrow
    FIT = 4


@dataclass(frozen=True)
class Fit:
    """How well, and whether with quota of others."""

    mode: Mode
    borrows: bool

    def preferred_to(self, other: Fit, preference: str) -> bool:
        """What can be had comes before what cannot; then as the ClusterQueue prefers."""
        if Mode.NO_FIT in (self.mode, other.mode):
            return self.mode > other.mode == Mode.NO_FIT
        return self._rank(preference) > other._rank(preference)

    def _rank(self, preference: str) -> tuple[int, ...]:
        possible, local = int(self.mode != Mode.NO_CANDIDATES), int(not self.borrows)
        if preference == "PreemptionOverBorrowing":
            return possible, local, self.mode
        return possible, self.mode, local


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """One resource that a flavor does not have enough of. `ever`: not even with no other job there."""

    resource: str
    asked: Fraction  # with what earlier pod sets of the same workload ask of this flavor
    has: Fraction  # the most there could ever be, or what is free now
    ever: bool


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One flavor tried for one pod set. `mismatches` are label keys; with one, or a taint, no quota was compared."""

    flavor: str
    fit: Fit
    mismatches: tuple[str, ...] = ()
    untolerated: str = ""  # key of a taint
    shortages: tuple[Shortage, ...] = ()

    @property
    def matches(self) -> bool:
        return not self.mismatches and not self.untolerated

    @property
    def never(self) -> bool:
        return not self.matches or any(shortage.ever for shortage in self.shortages)


@dataclass(frozen=True, kw_only=True)
class GroupOutcome:
    """What one resource group came to for one pod set: every flavor tried, and the one to take if any."""

    resources: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    chosen: Attempt | None


def assign(
    cluster: Cluster, queue: ClusterQueue, pod_set: PodSet, *, priority: int, before: Mapping[FlavorResource, Fraction]
) -> tuple[list[GroupOutcome], list[str]]:
    """The outcome of each resource group, and the resources that no group covers.

    `before` is what earlier pod sets of the same workload were given.
    """
    requests = pod_set.total()
    covered = {resource for resources, _ in queue.resource_groups for resource in resources}
    uncovered = [resource for resource, number in requests.items() if number and resource not in covered]
    outcomes = []
    for resources, flavors in queue.resource_groups:
        asked = {resource: number for resource, number in requests.items() if resource in resources}
        if asked:
            outcomes.append(_best_flavor(cluster, queue, flavors, pod_set, asked, priority, before))
    return outcomes, uncovered


def _best_flavor(
    cluster: Cluster,
    queue: ClusterQueue,
    flavors: tuple[str, ...],
    pod_set: PodSet,
    asked: Mapping[str, Fraction],
    priority: int,
    before: Mapping[FlavorResource, Fraction],
) -> GroupOutcome:
    attempts: list[Attempt] = []
    best: Attempt | None = None
    for name in flavors:
        attempt = _attempt(cluster, queue, cluster.flavors[name], pod_set, asked, priority, before)
        attempts.append(attempt)
        if not _try_next(attempt.fit, queue):
            best = attempt
            break
        if attempt.fit.preferred_to(best.fit if best else Fit(Mode.NO_FIT, borrows=True), queue.preference):
            best = attempt
    return GroupOutcome(resources=tuple(asked), attempts=tuple(attempts), chosen=best)


def _attempt(
    cluster: Cluster,
    queue: ClusterQueue,
    flavor: Flavor,
    pod_set: PodSet,
    asked: Mapping[str, Fraction],
    priority: int,
    before: Mapping[FlavorResource, Fraction],
) -> Attempt:
    mismatches, taint = mismatching_labels(pod_set, flavor), untolerated_taint(pod_set, flavor)
    if mismatches or taint:
        no = Fit(Mode.NO_FIT, borrows=True)
        return Attempt(flavor=flavor.name, fit=no, mismatches=mismatches, untolerated=taint)
    worst, shortages = Fit(Mode.FIT, borrows=False), []
    for resource, number in asked.items():
        key = (flavor.name, resource)
        needed = before.get(key, ZERO) + number
        fit, shortage = _fit(cluster, queue, key, needed, priority)
        if shortage:
            shortages.append(shortage)
        if worst.preferred_to(fit, queue.preference):
            worst = fit
    return Attempt(flavor=flavor.name, fit=worst, shortages=tuple(shortages))


def _fit(
    cluster: Cluster, queue: ClusterQueue, key: FlavorResource, needed: Fraction, priority: int
) -> tuple[Fit, Shortage | None]:
    """One resource of one flavor: fitsResourceQuota."""
    most, free = cluster.potential(queue.name, key), cluster.available(queue.name, key)
    borrows = cluster.borrowed(queue.name, key, needed) > 0
    if needed > most:
        return Fit(Mode.NO_FIT, borrows), Shortage(resource=key[1], asked=needed, has=most, ever=True)
    if needed <= free:
        return Fit(Mode.FIT, borrows), None
    shortage = Shortage(resource=key[1], asked=needed, has=free, ever=False)
    if needed > cluster.quota(queue.name, key).nominal:
        return Fit(Mode.NO_FIT, borrows), shortage
    stopped = targets(cluster, queue.name, priority=priority, requests={key: needed}, contested={key})
    if not stopped:
        return Fit(Mode.NO_CANDIDATES, borrows), shortage
    own = any(item.cluster_queue == queue.name for item in stopped)
    borrows = without(cluster, stopped).borrowed(queue.name, key, needed) > 0
    return Fit(Mode.PREEMPT if own else Mode.RECLAIM, borrows), shortage


def alternatives(cluster: Cluster, queue: ClusterQueue, pods: PodSet, flavor: Flavor) -> list[Flavor]:
    """The queue's other flavors that take these pods: with chips if they ask for any, otherwise without."""
    wants_chips = bool(pods.requests.get(TPU))
    return [
        other
        for name in queue.flavors
        if (other := cluster.flavors[name]) is not flavor
        and (cluster.potential(queue.name, (name, TPU)) > 0) == wants_chips
        and not mismatching_labels(pods, other)
        and not untolerated_taint(pods, other)
    ]


def _try_next(fit: Fit, queue: ClusterQueue) -> bool:
    if fit.mode in (Mode.NO_FIT, Mode.NO_CANDIDATES):
        return True
    if fit.mode in (Mode.PREEMPT, Mode.RECLAIM) and queue.when_can_preempt == "TryNextFlavor":
        return True
    return fit.borrows and queue.when_can_borrow == "TryNextFlavor"


def untolerated_taint(pod_set: PodSet, flavor: Flavor, taints: Iterable[Field] | None = None) -> str:
    """The key of the first taint that keeps the pods away: of the flavor, or of `taints`, with what the template and
    the flavor tolerate. Kueue compares nothing else.
    """
    tolerations = [*pod_set.spec.get("tolerations").items(), *flavor.tolerations]
    for taint in flavor.taints if taints is None else taints:
        if taint.get("effect").text() == "PreferNoSchedule":
            continue
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            return taint.get("key").text()
    return ""


def _tolerates(toleration: Field, taint: Field) -> bool:
    key, effect = toleration.get("key").text(), toleration.get("effect").text()
    if effect and effect != taint.get("effect").text():
        return False
    if key and key != taint.get("key").text():
        return False
    if toleration.get("operator").text("Equal") == "Exists":
        return True
    return bool(key) and toleration.get("value").text() == taint.get("value").text()


def mismatching_labels(pod_set: PodSet, flavor: Flavor) -> tuple[str, ...]:
    """The flavor's label keys for which the pods ask another value. Keys that the flavor does not have do not count."""
    selector = pod_set.node_selector
    wrong = [key for key, value in flavor.labels.items() if selector.get(key, value) != value]
    return tuple(wrong or _affinity_mismatch(pod_set, flavor))


def _affinity_mismatch(pod_set: PodSet, flavor: Flavor) -> list[str]:
    """Terms are alternatives; one without any of the flavor's keys is met by every flavor."""
    missed: list[str] = []
    for term in pod_set.node_affinity():
        known = [item for item in term.get("matchExpressions").items() if item.get("key").text() in flavor.labels]
        wrong = [item.get("key").text() for item in known if not matches_expression(item, flavor.labels)]
        if not wrong:
            return []
        missed += wrong
    return missed


def matches_expression(expression: Field, labels: Mapping[str, str]) -> bool:
    """One `matchExpressions` entry of a node affinity or a label selector."""
    operator = expression.get("operator").text()
    value = labels.get(expression.get("key").text())
    values = [item.text() for item in expression.get("values").items()]
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    return _compares(operator, value, values)


def _compares(operator: str, value: str | None, values: list[str]) -> bool:
    try:
        number, limit = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > limit if operator == "Gt" else operator == "Lt" and number < limit


def selects(selector: Field, labels: Mapping[str, str]) -> bool:
    """A label selector: absent selects nothing, empty selects everything (metav1.LabelSelector)."""
    if selector.value is None:
        return False
    match_labels = selector.get("matchLabels").texts()
    return all(labels.get(key) == value for key, value in match_labels.items()) and all(
        matches_expression(item, labels) for item in selector.get("matchExpressions").items()
    )


def usage_of(outcomes: Sequence[GroupOutcome], requests: Mapping[str, Fraction]) -> Amounts:
    """What the chosen flavors take: nothing unless there is one in every resource group."""
    chosen = [(outcome.chosen.flavor, outcome.resources) for outcome in outcomes if outcome.chosen]
    if len(chosen) < len(outcomes):
        return {}
    return {(flavor, resource): requests[resource] for flavor, resources in chosen for resource in resources}
