"""Why no flavor is free for a pod set, in words: only the flavors that were meant, and what to change."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from fractions import Fraction

from admission.cluster import Cluster, ClusterQueue
from admission.kueue.flavors import Attempt, GroupOutcome, Shortage
from admission.result import Reason, amount, asked, never, waits
from admission.workload import PodSet
from vocabulary.keys import ACCELERATOR_LABEL, TOPOLOGY_LABEL, TPU
from vocabulary.printable import counted

_CODES = {ACCELERATOR_LABEL: "wrong-accelerator", TOPOLOGY_LABEL: "wrong-topology"}


def why_no_flavor(cluster: Cluster, queue: ClusterQueue, pods: PodSet, outcome: GroupOutcome) -> Iterator[Reason]:
    """Nothing if a flavor was chosen. Otherwise what keeps the pods from the flavors they can have meant."""
    if outcome.chosen:
        return
    attempts = meant(cluster, queue, pods, outcome)
    waiting = [item for item in attempts if not item.never]
    matching = [item for item in attempts if item.matches]
    if waiting:
        yield from (_in_use(cluster, queue, pods, attempt) for attempt in waiting[:1])
    elif matching:
        yield from _too_big(cluster, queue, pods, matching)
    elif attempts:
        yield from _no_match(cluster, pods, attempts)
    else:
        asked_for = ", ".join(asked(name, pods.total()[name]) for name in outcome.resources)
        yield never(
            "no-such-quota",
            pods.name,
            f"asks for {asked_for}; no flavor of ClusterQueue {queue.name} has any",
            "ask for less",
        )


def meant(cluster: Cluster, queue: ClusterQueue, pods: PodSet, outcome: GroupOutcome) -> list[Attempt]:
    """TPU pods mean flavors that have chips at all, other pods the flavors without."""
    wants_chips = bool(pods.requests.get(TPU)) and TPU in outcome.resources
    return [item for item in outcome.attempts if (cluster.potential(queue.name, (item.flavor, TPU)) > 0) == wants_chips]


def nearest_misses(cluster: Cluster, pods: PodSet, attempts: list[Attempt]) -> tuple[Attempt, list[Attempt]]:
    """Of the accelerator that is meant, the flavor with the fewest labels that differ; and all of that accelerator."""

    def distance(attempt: Attempt) -> tuple[float, bool, int]:
        labels = cluster.flavors[attempt.flavor].labels
        return (
            _unlike(pods.node_selector.get(ACCELERATOR_LABEL), labels.get(ACCELERATOR_LABEL, "")),
            TOPOLOGY_LABEL in attempt.mismatches,
            len(attempt.mismatches),
        )

    nearest = min(attempts, key=distance)
    return nearest, [item for item in attempts if distance(item)[0] == distance(nearest)[0]]


def _no_match(cluster: Cluster, pods: PodSet, attempts: list[Attempt]) -> Iterator[Reason]:
    nearest, alike = nearest_misses(cluster, pods, attempts)
    for key in dict.fromkeys(nearest.mismatches):
        offered = sorted({cluster.flavors[item.flavor].labels.get(key, "") for item in alike})
        asked = pods.node_selector.get(key)
        yield never(
            _CODES.get(key, "wrong-node-label"),
            pods.name,
            f"selects {key}: {asked}" if asked is not None else f"its node affinity excludes every {key} there is",
            f"use {' or '.join(offered)}",
        )
    if nearest.untolerated:
        taint = next(
            taint for taint in cluster.flavors[nearest.flavor].taints if taint.get("key").text() == nearest.untolerated
        )
        effect = taint.get("effect").text()
        yield never(
            "missing-toleration",
            pods.name,
            f"does not tolerate the taint {nearest.untolerated} of flavor {nearest.flavor}; GKE adds the toleration to "
            "pods, but Kueue reads the template",
            f"add to its tolerations: {{key: {nearest.untolerated}, operator: Exists, effect: {effect}}}",
        )


def _unlike(requested: str | None, accelerator: str) -> float:
    """0 for the one that is asked for, or if none is; up to 1 for a name that has nothing of it."""
    return 0.0 if requested is None else 1 - SequenceMatcher(None, requested, accelerator).ratio()


def _too_big(cluster: Cluster, queue: ClusterQueue, pods: PodSet, matching: list[Attempt]) -> Iterator[Reason]:
    """More than there will ever be. With several flavors, the one that comes nearest."""

    def excess(attempt: Attempt) -> float:
        return max(float(item.asked / item.has) if item.has else float("inf") for item in attempt.shortages)

    nearest = min(matching, key=excess)
    for shortage in sorted(nearest.shortages, key=lambda item: item.resource != TPU):
        if shortage.ever:
            yield _beyond(cluster, queue, pods, nearest, shortage)


def _beyond(cluster: Cluster, queue: ClusterQueue, pods: PodSet, attempt: Attempt, shortage: Shortage) -> Reason:
    key = (attempt.flavor, shortage.resource)
    limited = cluster.quota(queue.name, key).borrowing_limit is not None
    requested, has = _in_slices(cluster, attempt, shortage, shortage.has)
    kept = any(cluster.quota(name, key).local for name in cluster.members(queue.name) if name != queue.name)
    if limited or not queue.cohort:
        most = f"ClusterQueue {queue.name} can have {has}"
    elif kept:
        most = f"ClusterQueue {queue.name} can have {has}, for other teams lend no more"
    else:
        most = f"all teams together have {has}"
    return never(
        "too-many-slices" if shortage.resource == TPU else "too-big",
        pods.name,
        f"all pods together ask for {requested} of flavor {attempt.flavor}; {most}",
        f"ask for {has} or less" if shortage.has else "ask for another flavor",
    )


def _in_use(cluster: Cluster, queue: ClusterQueue, pods: PodSet, attempt: Attempt) -> Reason:
    shortage = next((item for item in attempt.shortages if item.resource == TPU), attempt.shortages[0])
    nominal = cluster.quota(queue.name, (attempt.flavor, shortage.resource)).nominal
    requested, own, free = _in_slices(cluster, attempt, shortage, nominal, shortage.has)
    return waits(
        "quota-in-use",
        pods.name,
        f"asks for {requested} of flavor {attempt.flavor}, more than this team's own {own}; {free} free now, the rest "
        "is in use and may be borrowed when it is free",
    )


def _in_slices(cluster: Cluster, attempt: Attempt, shortage: Shortage, *amounts: Fraction) -> list[str]:
    """What is asked and these amounts, in words: in slices too, if whole slices are asked for."""
    shape = cluster.flavors[attempt.flavor].shape
    resource = shortage.resource
    words = [asked(resource, shortage.asked), *(amount(resource, number) for number in amounts)]
    if resource != TPU or not shape or shortage.asked % shape.chips:
        return words
    return [
        f"{counted(int(number // shape.chips), 'slice')} ({text})"
        for number, text in zip((shortage.asked, *amounts), words, strict=True)
    ]
