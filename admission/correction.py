"""Pods as they are once the advice on their node labels is followed, so that the next mistake is named at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from admission.cluster import Cluster, ClusterQueue, Flavor
from admission.gke import slices
from admission.kueue.features import foreign_groups
from admission.kueue.placement import Placed
from admission.shortages import meant, nearest_misses
from admission.workload import Field, PodSet
from vocabulary.keys import POOL_GROUP_LABEL, TPU

_TERMS = "nodeSelectorTerms"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def corrected(cluster: Cluster, queue: ClusterQueue, item: Placed) -> PodSet:
    """The pods themselves unless every flavor that they can have meant is kept from them by labels or a taint.

    A pool group of other teams stays: it may as well be added to this team's. Where the advice names several values,
    it is the flavor on whose nodes the pods have the fewest other mistakes.
    """
    outcome = next((one for one in item.outcomes if TPU in one.resources), next(iter(item.outcomes), None))
    attempts = meant(cluster, queue, item.pods, outcome) if outcome and not outcome.chosen else []
    foreign = foreign_groups(cluster, queue, item.pods.node_selector.get(POOL_GROUP_LABEL, ""))
    if foreign or not attempts or any(attempt.matches for attempt in attempts):
        return item.pods
    nearest, alike = nearest_misses(cluster, item.pods, attempts)
    ways = [
        (flavor, _with_labels_of(item.pods, flavor, nearest.mismatches))
        for attempt in [nearest, *alike]
        if {*attempt.mismatches} <= {*nearest.mismatches}
        for flavor in [cluster.flavors[attempt.flavor]]
    ]
    return min(ways, key=lambda way: len([*slices.problems(way[1], way[0])]))[1]


def _with_labels_of(pods: PodSet, flavor: Flavor, keys: Iterable[str]) -> PodSet:
    """With the flavor's values of these labels, and tolerating its taints."""
    changed = dict(pods.spec.mapping())
    selector = pods.node_selector
    changed["nodeSelector"] = selector | {key: flavor.labels[key] for key in keys if key in selector}
    excluding = {*keys} - selector.keys()
    if excluding:
        affinity, node = pods.spec.get("affinity").mapping(), pods.spec.get("affinity", "nodeAffinity").mapping()
        terms = [_without(term, excluding) for term in pods.node_affinity()]
        changed["affinity"] = {**affinity, "nodeAffinity": {**node, _REQUIRED: {_TERMS: terms}}}
    tolerations = [toleration.value for toleration in pods.spec.get("tolerations").items()]
    of_taints = [{"key": taint.get("key").text(), "operator": "Exists"} for taint in flavor.taints]
    changed["tolerations"] = [*tolerations, *of_taints]
    return replace(pods, template=Field({**pods.template.mapping(), "spec": changed}, pods.template.path))


def _without(term: Field, keys: set[str]) -> dict[str, Any]:
    """The term without what it asks of these labels."""
    kept = [item.value for item in term.get("matchExpressions").items() if item.get("key").text() not in keys]
    return {**term.mapping(), "matchExpressions": kept}
