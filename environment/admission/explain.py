"""Puts the answer together: refusals, the queue, flavors for each pod set, what GKE asks, and the words for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from environment.admission import slices
from environment.admission.cluster import ZERO, Amounts, Cluster, ClusterQueue, read_cluster
from environment.admission.flavors import GroupOutcome, alternatives, assign, usage_of
from environment.admission.manifest import PodSet, Workload, read
from environment.admission.node_labels import label_notes, label_reasons
from environment.admission.pods import account_reasons, pod_reasons
from environment.admission.preemption import targets
from environment.admission.refusals import refusals
from environment.admission.result import TPU, Explanation, PodSetPlan, Reason, Verdict
from environment.admission.route import Route, route
from environment.admission.shortages import why_no_flavor

PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"


def explain(objects: Iterable[Mapping[str, Any]], manifest: object, *, namespace: str = "default") -> Explanation:
    """Whether, where and why a workload would be admitted.

    `objects`: the cluster's ResourceFlavors, ClusterQueues, LocalQueues and WorkloadPriorityClasses; Namespaces, where
    it matters which exist or how they are labelled, and ServiceAccounts, where it matters which exist; Nodes, one of
    each kind, where their labels matter; and the Workloads that are admitted, for what is in use.
    `namespace` is for a manifest that names none. Raises NotAWorkload for one that cannot be read as a Job, JobSet,
    RayJob or RayCluster.
    """
    workload = read(manifest, namespace=namespace)
    wrong = [*refusals(workload), *pod_reasons(workload)]
    if _worst(wrong) == Verdict.REFUSED:
        return _unplaced(workload, wrong)
    if not workload.pod_sets:
        note = "runs on a RayCluster that exists, with that one's quota; Kueue does not queue it"
        return Explanation(workload=str(workload), verdict=Verdict.ADMITTED, notes=(note,))
    cluster = read_cluster(objects)
    way = route(cluster, workload)
    priority, unknown = _priority(cluster, workload)
    wrong += [*account_reasons(cluster, workload), *unknown]
    if way.cluster_queue is None:
        return _unplaced(workload, [*way.reasons, *wrong])
    return _placed(cluster, workload, way, way.cluster_queue, priority, wrong)


def _unplaced(workload: Workload, reasons: list[Reason]) -> Explanation:
    plans = tuple(PodSetPlan(name=pods.name, count=pods.count, requests=pods.total()) for pods in workload.pod_sets)
    return Explanation(workload=str(workload), verdict=_worst(reasons), pod_sets=plans, reasons=tuple(reasons))


def _worst(reasons: Iterable[Reason]) -> Verdict:
    return max((reason.verdict for reason in reasons), key=lambda verdict: verdict.badness, default=Verdict.ADMITTED)


def _priority(cluster: Cluster, workload: Workload) -> tuple[int, list[Reason]]:
    name = workload.labels.get(PRIORITY_LABEL, "")
    if not name or name in cluster.priorities:
        return cluster.priorities.get(name, 0), []
    known = ", ".join(sorted(cluster.priorities, key=cluster.priorities.__getitem__)) or "none"
    return 0, [
        Reason(
            verdict=Verdict.NEVER,
            code="unknown-priority",
            where=PRIORITY_LABEL,
            what=f"there is no WorkloadPriorityClass '{name}'; Kueue makes no Workload without it",
            fix=f"use one of {known}",
        )
    ]


def _priority_notes(cluster: Cluster, workload: Workload) -> Iterator[str]:
    named = any(pods.spec.get("priorityClassName").text() for pods in workload.pod_sets)
    if cluster.priorities and not workload.labels.get(PRIORITY_LABEL) and not named:
        known = ", ".join(sorted(cluster.priorities, key=cluster.priorities.__getitem__))
        yield f"no label {PRIORITY_LABEL}: priority 0, the first to be stopped (there are {known})"


def _placed(
    cluster: Cluster, workload: Workload, way: Route, queue: ClusterQueue, priority: int, wrong: list[Reason]
) -> Explanation:
    reasons = [*way.reasons, *wrong, *slices.exclusive_cpu_pods(workload)]
    notes = [*way.notes, *_priority_notes(cluster, workload)]
    plans: list[PodSetPlan] = []
    given: Amounts = {}
    contested: set[tuple[str, str]] = set()
    for pods in workload.pod_sets:
        outcomes, uncovered = assign(cluster, queue, pods, priority=priority, before=given)
        reasons += [*_uncovered(queue, pods, uncovered), *slices.without_chips(pods)]
        for outcome in outcomes:
            reasons += why_no_flavor(cluster, queue, pods, outcome)
            flavor = cluster.flavors.get(_flavor_to_judge(cluster, queue, outcome))
            if flavor:
                reasons += slices.problems(pods, flavor, alternatives(cluster, queue, pods, flavor))
                reasons += label_reasons(cluster, queue, pods, flavor)
                notes += [*slices.notes(pods, flavor), *label_notes(cluster, pods, flavor)]
        notes += _notes(pods)
        requests = pods.total()
        used = usage_of(outcomes, requests)
        chosen = [outcome.chosen for outcome in outcomes if outcome.chosen]
        contested |= {(each.flavor, shortage.resource) for each in chosen for shortage in each.shortages}
        for key, number in used.items():
            given[key] = given.get(key, ZERO) + number
        plans.append(_plan(cluster, pods, outcomes, requests))
    stopped = targets(cluster, queue.name, priority=priority, requests=given, contested=contested) if contested else ()
    if _worst(reasons).badness <= Verdict.WAITS.badness:
        reasons += _preemption_reasons(workload, stopped=[each.name for each in stopped], contested=contested)
        reasons += _checks(queue, plans)
    verdict = _worst(reasons)
    return Explanation(
        workload=str(workload),
        verdict=verdict,
        local_queue=way.local_queue,
        cluster_queue=queue.name,
        priority=priority,
        pod_sets=tuple(plans),
        reasons=tuple(reasons),
        notes=tuple(dict.fromkeys(notes)),
        borrows=_borrows(cluster, queue, given) if verdict == Verdict.ADMITTED else {},
        preempts=tuple(each.name for each in stopped) if verdict == Verdict.WAITS else (),
    )


def _borrows(cluster: Cluster, queue: ClusterQueue, given: Amounts) -> Amounts:
    return {key: more for key, number in given.items() if (more := cluster.borrowed(queue.name, key, number))}


def _uncovered(queue: ClusterQueue, pods: PodSet, resources: list[str]) -> Iterator[Reason]:
    covered = ", ".join(name for names, _ in queue.resource_groups for name in names)
    for resource in resources:
        yield Reason(
            verdict=Verdict.NEVER,
            code="not-covered",
            where=pods.name,
            what=f"asks for {resource}, which ClusterQueue {queue.name} has no quota of",
            fix=f"remove it from the requests and limits; covered are {covered}",
        )


def _flavor_to_judge(cluster: Cluster, queue: ClusterQueue, outcome: GroupOutcome) -> str:
    """The flavor whose nodes the pods must suit: the chosen one, or the first that could ever have their resources."""
    if outcome.chosen:
        return outcome.chosen.flavor
    for attempt in outcome.attempts:
        if attempt.matches and all(
            cluster.potential(queue.name, (attempt.flavor, name)) > 0 for name in outcome.resources
        ):
            return attempt.flavor
    return ""


def _plan(cluster: Cluster, pods: PodSet, outcomes: list[GroupOutcome], requests: Mapping[str, Fraction]) -> PodSetPlan:
    flavors = {name: outcome.chosen.flavor for outcome in outcomes if outcome.chosen for name in outcome.resources}
    flavor = cluster.flavors.get(flavors.get(TPU, ""))
    shape = slices.shape_of(flavor, pods) if flavor and requests.get(TPU) else None
    return PodSetPlan(
        name=pods.name,
        count=pods.count,
        flavors=flavors,
        requests=requests,
        slices=slices.slices_used(shape, pods) if shape else 0,
        shape=str(shape) if shape else "",
    )


def _preemption_reasons(workload: Workload, *, stopped: list[str], contested: set[tuple[str, str]]) -> Iterator[Reason]:
    if stopped:
        yield Reason(
            verdict=Verdict.WAITS,
            code="preempts",
            where="",
            what=f"Kueue first stops {', '.join(stopped)}, and starts this one in its place",
        )
    elif contested:
        short = ", ".join(sorted(_names(contested)))
        yield Reason(
            verdict=Verdict.WAITS,
            code="quota-in-use",
            where="",
            what=f"{short}: in use by jobs that this one may not stop; it starts when they are done",
            fix=f"a higher {PRIORITY_LABEL} stops lower ones of the same team",
        )


def _names(contested: set[tuple[str, str]]) -> Iterator[str]:
    """Of a flavor with chips these alone: its cores and memory come with them."""
    for flavor, resource in contested:
        if resource == TPU:
            yield f"chips of flavor {flavor}"
        elif (flavor, TPU) not in contested:
            yield f"{resource} of flavor {flavor}"


def _checks(queue: ClusterQueue, plans: list[PodSetPlan]) -> Iterator[Reason]:
    used = {flavor for plan in plans for flavor in plan.flavors.values()}
    for name, flavors in queue.admission_checks:
        if not flavors or used.intersection(flavors):
            yield Reason(
                verdict=Verdict.WAITS,
                code="admission-check",
                where="",
                what=f"once it has its quota, it waits for the admission check '{name}'",
            )


def _notes(pods: PodSet) -> Iterator[str]:
    if not pods.requests:
        yield f"{pods.name}: requests nothing, so Kueue counts and places nothing for it"
    elif not slices.wants_tpu_nodes(pods) and any(
        toleration.get("key").text() in ("", TPU) for toleration in pods.spec.get("tolerations").items()
    ):
        yield f"{pods.name}: asks for no chips but tolerates TPU nodes, and may take a host's cores there"
