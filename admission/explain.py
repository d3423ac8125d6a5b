"""Puts the answer together: refusals, the queue, flavors for each pod set, what GKE asks, and the words for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from admission.all_rules import refusals
from admission.api_server.references import account_reasons, pod_priority
from admission.boundary import Boundary
from admission.cluster import Amounts, Cluster, ClusterQueue, read_cluster
from admission.correction import corrected
from admission.gke import slices
from admission.gke.cpu_pool import cpu_pool_notes
from admission.gke.node_labels import label_notes, label_reasons
from admission.gke.spot import spot_notes
from admission.known_faults import fault_notes
from admission.kuberay import clusters as ray_clusters
from admission.kueue.features import fewest_pods, foreign_groups, way_reasons
from admission.kueue.flavors import GroupOutcome, alternatives, usage_of
from admission.kueue.placement import Placed, Placement, place, place_some
from admission.kueue.route import Route, route
from admission.kueue.topology import topology_reasons
from admission.kueue.workload_reader import read
from admission.result import Explanation, PodSetPlan, Reason, Verdict, never, waits
from admission.shortages import why_no_flavor
from admission.workload import PodSet, Workload
from vocabulary.keys import MIN_PARALLELISM_ANNOTATION, POOL_GROUP_LABEL, PRIORITY_LABEL, TPU


def explain(objects: Iterable[Mapping[str, Any]], manifest: object, *, namespace: str = "default") -> Explanation:
    """Whether, where and why a workload would be admitted.

    `objects`: the cluster's ResourceFlavors, ClusterQueues, LocalQueues and WorkloadPriorityClasses; Namespaces, where
    it matters which exist, how they are labelled or what they allow, with their LimitRanges; ServiceAccounts, where it
    matters which exist; Nodes, one of each kind, where their labels matter; and the Workloads that are admitted, for
    what is in use.
    `namespace` is for a manifest that names none. Raises NotAWorkload for one that cannot be read as a Job, JobSet,
    RayJob or RayCluster.
    """
    cluster = read_cluster(objects)
    workload, wrong = read(manifest, namespace=namespace, default_requests=cluster.default_requests)
    within = cluster.boundaries.get(workload.namespace, Boundary())
    wrong += refusals(workload, autopilot=cluster.autopilot, within=within)
    if not workload.pod_sets:
        note = "runs on a RayCluster that exists, with that one's quota; Kueue does not queue it"
        notes = () if wrong else (note,)
        return Explanation(workload=str(workload), verdict=_worst(wrong), reasons=tuple(wrong), notes=notes)
    way = route(cluster, workload)
    priority, unknown = _priority(cluster, workload)
    wrong += [
        *account_reasons(cluster, workload),
        *unknown,
        *way_reasons(cluster, workload),
    ]
    misnamed = any(reason.code == "bad-queue-name" for reason in wrong)
    if misnamed:
        way = replace(way, reasons=tuple(item for item in way.reasons if item.code != "unknown-queue"))
    if way.cluster_queue is None:
        return _unplaced(workload, [*way.reasons, *wrong])
    placed = _placed(cluster, workload, way, way.cluster_queue, priority, wrong)
    if not way.assumed:
        return placed
    return _unplaced(workload, [item for item in placed.reasons if item in wrong or item.verdict != Verdict.WAITS])


def _unplaced(workload: Workload, reasons: list[Reason]) -> Explanation:
    plans = tuple(PodSetPlan(name=pods.name, count=pods.count, requests=pods.total()) for pods in workload.pod_sets)
    return Explanation(workload=str(workload), verdict=_worst(reasons), pod_sets=plans, reasons=tuple(reasons))


def _worst(reasons: Iterable[Reason]) -> Verdict:
    return max((reason.verdict for reason in reasons), key=lambda verdict: verdict.badness, default=Verdict.ADMITTED)


def _priority(cluster: Cluster, workload: Workload) -> tuple[int, list[Reason]]:
    name = workload.labels.get(PRIORITY_LABEL, "")
    if not name:
        return pod_priority(cluster, workload), []
    if name in cluster.priorities:
        return cluster.priorities[name], []
    known = ", ".join(sorted(cluster.priorities, key=cluster.priorities.__getitem__)) or "none"
    return 0, [
        never(
            "unknown-priority",
            PRIORITY_LABEL,
            f"there is no WorkloadPriorityClass '{name}'; Kueue creates no Workload without it",
            f"use one of {known}",
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
    placement, partial = _placement(cluster, queue, workload, priority)
    reasons = [*way.reasons, *wrong, *slices.exclusive_cpu_pods(workload)]
    notes = [*way.notes, *_priority_notes(cluster, workload), *partial, *slices.kept_slices(workload)]
    for item in placement.placed:
        reasons += _pod_set_reasons(cluster, queue, item)
        notes += _pod_set_notes(cluster, queue, item)
    reasons += _once_corrected(cluster, queue, placement, priority, reasons)
    plans = [_plan(cluster, item) for item in placement.placed]
    notes += [*cpu_pool_notes(cluster, workload, plans), *ray_clusters.notes(workload), *fault_notes(workload)]
    stopped = [item.name for item in placement.stopped]
    if _worst(reasons).badness <= Verdict.WAITS.badness:
        reasons += _preemption_reasons(stopped=stopped, contested=placement.contested)
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
        borrows=_borrows(cluster, queue, placement.given) if verdict == Verdict.ADMITTED else {},
        preempts=tuple(stopped) if verdict == Verdict.WAITS else (),
    )


def _placement(
    cluster: Cluster, queue: ClusterQueue, workload: Workload, priority: int
) -> tuple[Placement, tuple[str, ...]]:
    """All pods, or as many as fit where the Job takes fewer; and what to say about that."""
    whole, fewest = place(cluster, queue, workload.pod_sets, priority=priority), fewest_pods(workload)
    if whole.fits or fewest is None:
        return whole, ()
    asked = workload.pod_sets[0]
    some = place_some(cluster, queue, asked, priority=priority, fewest=fewest)
    if some is None:
        return whole, ()
    count = some.placed[0].pods.count
    return some, (f"{MIN_PARALLELISM_ANNOTATION} is {fewest}: Kueue starts {count} of its {asked.count} pods",)


def _pod_set_reasons(cluster: Cluster, queue: ClusterQueue, item: Placed) -> Iterator[Reason]:
    pods = item.pods
    yield from _uncovered(queue, pods, item.uncovered)
    yield from slices.without_chips(pods)
    yield from topology_reasons(cluster, queue, pods)
    foreign = foreign_groups(cluster, queue, pods.node_selector.get(POOL_GROUP_LABEL, ""))
    if foreign:
        yield foreign
    if not foreign:
        yield from _why_no_flavors(cluster, queue, item)
    flavor = cluster.flavors.get(_flavor_to_judge(cluster, queue, item))
    if flavor:
        yield from slices.problems(pods, flavor, alternatives(cluster, queue, pods, flavor))
        yield from label_reasons(cluster, queue, pods, flavor)


def _once_corrected(
    cluster: Cluster, queue: ClusterQueue, placement: Placement, priority: int, known: list[Reason]
) -> list[Reason]:
    """What a wrong node label hides: the mistakes that are left once it is as the reasons advise."""
    pods = [corrected(cluster, queue, item) for item in placement.placed]
    if all(one is item.pods for one, item in zip(pods, placement.placed, strict=True)):
        return []
    said = {(reason.code, reason.where) for reason in known}
    again = place(cluster, queue, pods, priority=priority).placed
    reasons = [reason for item in again for reason in _pod_set_reasons(cluster, queue, item)]
    return [item for item in reasons if item.verdict != Verdict.WAITS and (item.code, item.where) not in said]


def _pod_set_notes(cluster: Cluster, queue: ClusterQueue, item: Placed) -> Iterator[str]:
    flavor = cluster.flavors.get(_flavor_to_judge(cluster, queue, item))
    if flavor:
        yield from slices.notes(item.pods, flavor)
        yield from label_notes(cluster, item.pods, flavor)
        yield from spot_notes(cluster, item.pods, flavor)
    yield from _notes(item.pods)


def _borrows(cluster: Cluster, queue: ClusterQueue, given: Amounts) -> Amounts:
    return {key: more for key, number in given.items() if (more := cluster.borrowed(queue.name, key, number))}


def _uncovered(queue: ClusterQueue, pods: PodSet, resources: Iterable[str]) -> Iterator[Reason]:
    covered = ", ".join(name for names, _ in queue.resource_groups for name in names)
    for resource in resources:
        yield never(
            "not-covered",
            pods.name,
            f"asks for {resource}, which ClusterQueue {queue.name} has no quota of",
            f"remove it from the requests and limits; covered are {covered}",
        )


def _why_no_flavors(cluster: Cluster, queue: ClusterQueue, item: Placed) -> Iterator[Reason]:
    """Of each resource group; where a slice is waited for, nothing of the cores that come with it."""
    without_chips = any(TPU in outcome.resources and not outcome.chosen for outcome in item.outcomes)
    for outcome in item.outcomes:
        for reason in why_no_flavor(cluster, queue, item.pods, outcome):
            if TPU in outcome.resources or not without_chips or reason.verdict != Verdict.WAITS:
                yield reason


def _flavor_to_judge(cluster: Cluster, queue: ClusterQueue, item: Placed) -> str:
    """The flavor whose nodes the pods must suit: the chosen one, or the first that could ever have their resources.

    Of pods with chips it is the flavor of these: that of their cores says nothing of nodes.
    """
    first = next(iter(item.outcomes), None)
    outcome: GroupOutcome | None = next((one for one in item.outcomes if TPU in one.resources), first)
    if outcome is None:
        return ""
    if outcome.chosen:
        return outcome.chosen.flavor
    for attempt in outcome.attempts:
        if attempt.matches and all(
            cluster.potential(queue.name, (attempt.flavor, name)) > 0 for name in outcome.resources
        ):
            return attempt.flavor
    return ""


def _plan(cluster: Cluster, item: Placed) -> PodSetPlan:
    pods, requests = item.pods, item.pods.total()
    flavors = {resource: flavor for flavor, resource in usage_of(item.outcomes, requests)}
    flavor = cluster.flavors.get(flavors.get(TPU, ""))
    shape = flavor.shape if flavor and requests.get(TPU) else None
    return PodSetPlan(
        name=pods.name,
        count=pods.count,
        flavors=flavors,
        requests=requests,
        slices=pods.count // shape.hosts if shape else 0,
        shape=str(shape) if shape else "",
    )


def _preemption_reasons(*, stopped: list[str], contested: frozenset[tuple[str, str]]) -> Iterator[Reason]:
    if stopped:
        yield waits(
            "preempts",
            "",
            f"Kueue first stops {', '.join(stopped)}, and starts this one in its place",
        )
    elif contested:
        short = ", ".join(sorted(_names(contested)))
        yield waits(
            "quota-in-use",
            "",
            f"{short}: in use by jobs that this one may not stop; it starts when they are done",
            f"a higher {PRIORITY_LABEL} stops lower ones of the same team",
        )


def _names(contested: frozenset[tuple[str, str]]) -> Iterator[str]:
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
            yield waits(
                "admission-check",
                "",
                f"once it has its quota, it waits for the admission check '{name}'",
            )


def _notes(pods: PodSet) -> Iterator[str]:
    if not pods.requests:
        yield f"{pods.name}: requests nothing, so Kueue counts and places nothing for it"
    elif not slices.wants_tpu_nodes(pods) and slices.tolerates_tpu_nodes(pods):
        yield f"{pods.name}: asks for no chips but tolerates TPU nodes, and may take a host's cores there"
