"""Kueue's topology annotations on pods: which its webhooks refuse (0.19.2), and that our flavors have no topology."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from admission.cluster import Cluster, ClusterQueue
from admission.kueue.webhooks import is_elastic, whole_number
from admission.result import Reason, never
from admission.rule import Finding, RuleBook
from admission.syntax import is_qualified_name
from admission.workload import Field, PodSet, Workload
from vocabulary.printable import brief

REQUIRED = "kueue.x-k8s.io/podset-required-topology"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
SLICE_REQUIRED = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
CONSTRAINTS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
GROUP = "kueue.x-k8s.io/podset-group-name"

BOOK = RuleBook(source="Kueue 0.19.2 pkg/controller/jobframework/tas_validation.go")
_JOBS = RuleBook(source="Kueue 0.19.2 pkg/controller/jobs/job/job_webhook.go", rules=BOOK.rules)
_BOOLEANS = ("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False")
_MOST_LAYERS = 3
_LEVEL_FIX = "name the label of a level, such as cloud.google.com/gce-topology-block"


class _Annotated(NamedTuple):
    """A pod set, the place of its annotations, and the annotations."""

    pods: PodSet
    place: Field
    texts: dict[str, str]


def _annotated(workload: Workload) -> Iterator[_Annotated]:
    """Each pod set but KubeRay's submitter, which Kueue's webhooks do not check."""
    for pods in workload.pod_sets:
        if pods.path != "spec.submitterPodTemplate":
            place = pods.template.get("metadata", "annotations")
            yield _Annotated(pods, place, place.texts())


@BOOK.rule("several-topologies", "ValidateTASPodSetRequest", parts=_annotated)
def _one(annotated: _Annotated) -> Iterator[Finding]:
    _, place, texts = annotated
    present = [key for key in (REQUIRED, PREFERRED, UNCONSTRAINED) if key in texts]
    if len(present) > 1:
        yield place.path, f"has {' and '.join(present)}", "keep one of them"


@BOOK.rule("bad-topology", "ValidateTASPodSetRequest", parts=_annotated)
def _levels(annotated: _Annotated) -> Iterator[Finding]:
    _, place, texts = annotated
    for key in (REQUIRED, PREFERRED, SLICE_REQUIRED):
        if key in texts and not is_qualified_name(texts[key]):
            yield f"{place.path}.{key}", f"{brief(texts[key])} is not the key of a label", _LEVEL_FIX
    if UNCONSTRAINED in texts and texts[UNCONSTRAINED] not in _BOOLEANS:
        what = f"{brief(texts[UNCONSTRAINED])} is not true or false"
        yield f"{place.path}.{UNCONSTRAINED}", what, 'write "true"'


@BOOK.rule("bad-topology-slice", "validateSliceSizeAnnotation, ValidateSliceSizeAnnotationUpperBound", parts=_annotated)
def _slices(annotated: _Annotated) -> Iterator[Finding]:
    pods, place, texts = annotated
    if (SLICE_REQUIRED in texts) != (SLICE_SIZE in texts):
        there, missing = (SLICE_SIZE, SLICE_REQUIRED) if SLICE_SIZE in texts else (SLICE_REQUIRED, SLICE_SIZE)
        yield f"{place.path}.{there}", f"needs {missing} beside it", "set both or none"
    size = whole_number(texts.get(SLICE_SIZE, "1")) or 0
    if SLICE_SIZE in texts and not 1 <= size <= pods.count:
        what = f"{brief(texts[SLICE_SIZE])} is not between 1 and the {pods.count} pods"
        yield f"{place.path}.{SLICE_SIZE}", what, "set it to the pods of one slice"


@BOOK.rule("bad-topology-group", "ValidateTASPodSetRequest", parts=_annotated)
def _group(annotated: _Annotated) -> Iterator[Finding]:
    _, place, texts = annotated
    where = f"{place.path}.{GROUP}"
    if GROUP not in texts:
        return
    name = texts[GROUP]
    if (whole_number(name) or -1) >= 0 or name == "0":
        yield where, f"{brief(name)} is a number", "use a name"
    for other in (SLICE_SIZE, SLICE_REQUIRED, CONSTRAINTS):
        if other in texts:
            yield where, f"cannot stand beside {other}", "remove one of them"
    if REQUIRED not in texts and PREFERRED not in texts:
        yield where, f"needs {REQUIRED} or {PREFERRED} beside it", "add one of them"


@BOOK.rule("topology-group-of-two", "ValidatePodSetGroupingTopology", ("JobSet", "RayJob", "RayCluster"))
def _groups(workload: Workload) -> Iterator[Finding]:
    groups: dict[str, list[_Annotated]] = {}
    for annotated in _annotated(workload):
        if GROUP in annotated.texts and (REQUIRED in annotated.texts or PREFERRED in annotated.texts):
            groups.setdefault(annotated.texts[GROUP], []).append(annotated)
    for name, members in groups.items():
        yield from _of_group(name, members)


def _of_group(name: str, members: list[_Annotated]) -> Iterator[Finding]:
    where = f"{members[0].place.path}.{GROUP}"
    if len(members) != 2:
        yield where, f"the group {brief(name)} has {len(members)} kinds of pods; it must have 2", "group two of them"
        return
    (first, _, texts), (second, _, others) = members
    if first.count != 1 and second.count != 1:
        what = f"the group {brief(name)} has {first.count} and {second.count} pods"
        yield where, f"{what}; one of the two must have 1", "group workers with their leader"
    if any(texts.get(key) != others.get(key) for key in (REQUIRED, PREFERRED)):
        yield where, f"the two of the group {brief(name)} ask for different topologies", "ask for the same"


@BOOK.rule("bad-topology-layers", "validateSliceRequiredTopologyConstraintsAnnotation", parts=_annotated)
def _layers(annotated: _Annotated) -> Iterator[Finding]:
    pods, place, texts = annotated
    if CONSTRAINTS not in texts:
        return
    where = f"{place.path}.{CONSTRAINTS}"
    for other in (SLICE_SIZE, SLICE_REQUIRED):
        if other in texts:
            yield where, f"cannot stand beside {other}", "remove one of them"
    wrong = _wrong_layers(texts[CONSTRAINTS], pods.count)
    if wrong:
        fix = f'write a list of 1 to {_MOST_LAYERS} such as [{{"topology": "LABEL", "size": PODS}}], coarsest first'
        yield where, wrong, fix


def _wrong_layers(text: str, count: int) -> str:
    try:
        layers = json.loads(text)
    except (ValueError, RecursionError):
        return f"{brief(text)} is not JSON"
    if not isinstance(layers, list) or not all(isinstance(item, dict) for item in layers):
        return f"{brief(text)} is not a list of topology and size"
    if not 1 <= len(layers) <= _MOST_LAYERS:
        return f"has {len(layers)} layers"
    sizes = [item.get("size") for item in layers]
    names = [item.get("topology") for item in layers]
    if not all(type(size) is int and 1 <= size < 2**31 for size in sizes):
        return "has a size that is no whole number over 0"
    if not all(isinstance(name, str) and is_qualified_name(name) for name in names):
        return "has a topology that is not the key of a label"
    if len(set(names)) < len(names):
        return "has a topology twice"
    if any(above % below for above, below in pairwise(sizes)):
        return "has a size that is no multiple of the next"
    return f"has a layer of {sizes[0]} pods of {count}" if sizes[0] > count else ""


@_JOBS.rule("elastic-topology", "validateTopologyRequest", ("Job",))
def _elastic(workload: Workload) -> Iterator[Finding]:
    for _, place, texts in _annotated(workload) if is_elastic(workload) else ():
        for key in (REQUIRED, PREFERRED):
            if key in texts:
                yield f"{place.path}.{key}", "an elastic job may only be unconstrained", f"use {UNCONSTRAINED}"


def topology_reasons(cluster: Cluster, queue: ClusterQueue, pods: PodSet) -> Iterator[Reason]:
    """Why pods that ask for a topology get no flavor (flavorassigner, checkPodSetAndFlavorMatchForTAS)."""
    texts = pods.template.get("metadata", "annotations").texts()
    asked = [key for key in (REQUIRED, PREFERRED, UNCONSTRAINED, SLICE_REQUIRED, CONSTRAINTS) if key in texts]
    if asked and not any(cluster.flavors[name].topology for name in queue.flavors):
        yield never(
            "no-topology",
            pods.name,
            f"asks for {asked[0]}; no flavor of ClusterQueue {queue.name} has a topology for Kueue to schedule by",
            "remove the annotation: a slice is one node pool, and JobSet's exclusive-topology keeps pods on it",
        )
