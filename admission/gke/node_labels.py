"""Labels that pods ask of their nodes and that no flavor has: Kueue passes over them, the scheduler does not.

Kueue 0.19.2 (pkg/scheduler/flavorassigner, flavorSelector) drops every other key from a pod's selector and affinity. So
it admits pods that no node will take, and they hold their quota.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from admission.cluster import Cluster, ClusterQueue, Flavor
from admission.kueue.flavors import alternatives, matches_expression, untolerated_taint
from admission.result import Reason, never
from admission.workload import Field, PodSet
from vocabulary.keys import ACCELERATOR_LABEL, FLEX_START_LABEL, POOL_GROUP_LABEL, SPOT_LABEL, TOPOLOGY_LABEL, TPU

# What GKE's nodes have, whatever their pool: another value is no more than unlikely.
_USUAL = {
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "cloud.google.com/gke-os-distribution": "cos",
    "cloud.google.com/gke-container-runtime": "containerd",
    "iam.gke.io/gke-metadata-server-enabled": "true",
}
# Where a node is known and has none of these, it has none: GKE gives them with what they stand for, or not at all.
_TOLD = (SPOT_LABEL, FLEX_START_LABEL, "cloud.google.com/gke-preemptible", "cloud.google.com/gke-accelerator")
_OF_SLICES = (ACCELERATOR_LABEL, TOPOLOGY_LABEL)  # what is wrong with these is said with the chips


@dataclass(frozen=True, kw_only=True)
class _Missing:
    """One thing asked for, in words, that a node does not have; `certain`, or not known to have."""

    key: str
    asked: str
    certain: bool


def label_reasons(cluster: Cluster, queue: ClusterQueue, pods: PodSet, flavor: Flavor) -> Iterator[Reason]:
    """Why no node of this flavor takes these pods, where that is certain."""
    missing = _missing(cluster, pods, flavor)
    if not any(item.certain for item in missing):
        return
    it, them = ("that label", "it") if len(missing) == 1 else ("those labels", "them")
    yield never(
        "no-such-node",
        pods.name,
        f"selects {_words(missing)}; Kueue ignores {it} and gives the pods flavor {flavor.name}, no node "
        f"of which has {them}: they would wait for ever and hold their quota",
        _fix(cluster, queue, pods, flavor, missing, them),
    )


def label_notes(cluster: Cluster, pods: PodSet, flavor: Flavor) -> Iterator[str]:
    """What a node of this flavor may have or not."""
    missing = _missing(cluster, pods, flavor)
    if missing and not any(item.certain for item in missing):
        yield (
            f"{pods.name}: selects {_words(missing)}, which Kueue ignores; no node of flavor {flavor.name} is "
            "known to have that, and where none has, the pods wait for ever and hold their quota"
        )


def _words(missing: Iterable[_Missing]) -> str:
    return ", ".join(item.asked for item in missing)


def _fix(
    cluster: Cluster, queue: ClusterQueue, pods: PodSet, flavor: Flavor, missing: list[_Missing], them: str
) -> str:
    """Another flavor that the pods could have and whose nodes take them; else what there is; else without."""
    for other in alternatives(cluster, queue, pods, flavor):
        group = other.labels.get(POOL_GROUP_LABEL, "")
        if group and _nodes(cluster, pods, other) and not _missing(cluster, pods, other):
            return f"select {POOL_GROUP_LABEL}: {group}, whose nodes have {them}, or remove {them}"
    first = missing[0].key
    there = sorted({labels[first] for labels in _nodes(cluster, pods, flavor) if first in labels})
    return f"use {' or '.join(there)}, or remove it" if there and len(missing) == 1 else f"remove {them}"


def _nodes(cluster: Cluster, pods: PodSet, flavor: Flavor) -> list[Mapping[str, str]]:
    """The labels of each node that Kueue gives out with this flavor, and whose taints keep the pods not away."""
    tolerated = TPU if pods.requests.get(TPU) else ""  # GKE gives this toleration to pods with chips
    return [
        node.labels
        for node in cluster.nodes_of(flavor)
        if not untolerated_taint(pods, flavor, [item for item in node.taints if item.get("key").text() != tolerated])
    ]


def _missing(cluster: Cluster, pods: PodSet, flavor: Flavor) -> list[_Missing]:
    """What the node that suits best does not have; nothing if one has all."""
    nodes = _nodes(cluster, pods, flavor)
    terms = [term.get("matchExpressions").items() for term in pods.node_affinity()] or [[]]
    selected = [Field({"key": key, "operator": "In", "values": [value]}) for key, value in pods.node_selector.items()]
    ways = [
        list(_of_node([*selected, *term], {**flavor.labels, **node}, known=bool(nodes)))
        for node in nodes or [flavor.labels]
        for term in terms
    ]
    return min(ways, key=lambda way: (any(item.certain for item in way), len(way)))


def _of_node(expressions: Iterable[Field], labels: Mapping[str, str], *, known: bool) -> Iterator[_Missing]:
    for item in expressions:
        key, operator = item.get("key").text(), item.get("operator").text()
        there = labels if key in labels else _USUAL
        absent = key not in labels and operator in ("NotIn", "DoesNotExist")
        if key not in _OF_SLICES and not absent and not matches_expression(item, there):
            certain = key in labels or (known and key in _TOLD)
            yield _Missing(key=key, asked=_asked(item), certain=certain)


def _asked(expression: Field) -> str:
    key, operator = expression.get("key").text(), expression.get("operator").text()
    values = [item.text() for item in expression.get("values").items()]
    return f"{key}: {values[0]}" if operator == "In" and len(values) == 1 else " ".join([key, operator, *values])
