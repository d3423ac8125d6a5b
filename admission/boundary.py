"""What the namespace of a team does not take: vocabulary/team_rules, held against a manifest.

The API server refuses it when the workload is created (stacks/policies.py): of the templates of pods too, for a JobSet
that is admitted and whose pods are then refused would hold its slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from admission.rule import Finding, Rule, RuleBook
from admission.workload import KINDS, Field, Workload, containers_of, templates_of
from vocabulary.keys import ADMITTED_POD_LABEL, HOST_ACCESS_LABEL, IMAGES_ANNOTATION, TPU
from vocabulary.printable import brief, quoted
from vocabulary.team_rules import (
    FINALIZER,
    MOST_RAY_HOSTS,
    MOST_RAY_REPLICAS,
    NOT_ADMITTED,
    PUBLIC_LOAD_BALANCER,
    RAY_SIZE,
    RULES,
    Of,
    TeamRule,
    steps_of,
)

BOOK = RuleBook(source="This environment, vocabulary/team_rules.py")

_INTERNAL = "networking.gke.io/load-balancer-type"  # Google's annotation of an internal load balancer


_KINDS = {Of.WORKLOAD: KINDS, Of.SERVICE: ("Service",), Of.SECRET: ("Secret",)}


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """What of the rules depends on the namespace. `images` are the prefixes that are allowed, none for all."""

    host_access: bool = False
    images: tuple[str, ...] = ()


def boundary_of(namespace: Mapping[str, Any]) -> Boundary:
    metadata = Field(namespace).get("metadata")
    images = metadata.get("annotations").get(IMAGES_ANNOTATION).text()
    return Boundary(
        host_access=HOST_ACCESS_LABEL in metadata.get("labels").mapping(),
        images=tuple(images.split(",")) if images else (),
    )


def refusals_of(manifest: Mapping[str, Any], boundary: Boundary) -> Iterator[str]:
    """Why a Pod, Service, Secret or workload is refused, in lines."""
    for where, what, fix in findings_of(manifest, boundary):
        yield f"{where}: {what}: {fix}"


def findings_of(manifest: Mapping[str, Any], boundary: Boundary) -> Iterator[Finding]:
    """What is refused of a Pod, Service, Secret or workload."""
    whole = Field(manifest)
    for row in RULES:
        yield from _findings(row, whole, boundary)
    yield from _uncounted(whole)
    kind = whole.get("kind").text()
    if kind == "Pod" and _has_chips(whole) and ADMITTED_POD_LABEL not in whole.get("metadata", "labels").mapping():
        yield "spec", *NOT_ADMITTED
    balances = kind == "Service" and whole.get("spec", "type").text() == "LoadBalancer"
    if balances and whole.get("metadata", "annotations").mapping().get(_INTERNAL) != "Internal":
        yield "spec.type", *PUBLIC_LOAD_BALANCER


def _findings(row: TeamRule, whole: Field, boundary: Boundary) -> Iterator[Finding]:
    for part in _parts(row.of, whole):
        if (row.without_chips or (row.host_access and boundary.host_access)) and _has_chips(part):
            continue
        for path in row.paths:
            for field in _reached(part, steps_of(path)):
                if words := _wrong(row, field, boundary):
                    yield field.path, f"{words}: {row.why}", row.advice


def _uncounted(whole: Field) -> Iterator[Finding]:
    """What runs on, or beside, what Kueue has counted."""
    if whole.get("kind").text() in KINDS and whole.get("metadata", "finalizers").items():
        yield "metadata.finalizers", *FINALIZER
    for ray in _parts(Of.RAY, whole):
        for group in ray.get("workerGroupSpecs").items():
            replicas, most = group.get("replicas").number(0), group.get("maxReplicas").number(MOST_RAY_REPLICAS)
            right = group.get("minReplicas").number(0) <= replicas <= min(most, MOST_RAY_REPLICAS)
            if not right or not 1 <= group.get("numOfHosts").number(1) <= MOST_RAY_HOSTS:
                yield f"{group.path}.replicas", *RAY_SIZE


def _parts(of: Of, whole: Field) -> Iterator[Field]:
    """What a row is about in an object."""
    kind, spec = whole.get("kind").text(), whole.get("spec")
    if of is Of.POD and kind == "Pod":
        yield whole
    elif of in (Of.POD, Of.TEMPLATE):
        yield from templates_of(whole)
    elif of is Of.RAY and kind in ("RayCluster", "RayJob"):
        yield spec if kind == "RayCluster" else spec.get("rayClusterSpec")
    elif kind in _KINDS.get(of, ()):
        yield whole


def _has_chips(pod: Field) -> bool:
    """More than none: a limit of 0 chips is one, too."""
    chips = (container.get("resources", "limits", TPU).quantity() for container in containers_of(pod.get("spec")))
    return any(chips)


def _reached(field: Field, steps: Sequence[str]) -> Iterator[Field]:
    """The fields at a path of a row."""
    if not steps:
        yield field
        return
    step, rest = steps[0], steps[1:]
    if step.endswith("[*]"):
        name = step.removesuffix("[*]")
        items = containers_of(field) if name == "containers" else field.get(name).items()
        for item in items:
            yield from _reached(item, rest)
    elif step.endswith("}"):
        name, _, prefix = step.rstrip("}").partition("{")
        holder = field.get(name)
        yield from (holder.get(str(key)) for key in holder.mapping() if str(key).startswith(prefix))
    else:
        yield from _reached(field.get(step), rest)


def _wrong(row: TeamRule, field: Field, boundary: Boundary) -> str:
    """How the value of a field breaks the rule, or ""."""
    value = field.value
    if row.prefixes:
        taken = not value or not boundary.images or str(value).startswith(boundary.images)
        return "" if taken else f"is {quoted(str(value))}"
    known = row.allowed or row.refused
    if row.at_most:
        return f"is {field.number(0)}, over {row.at_most}" if field.number(0) > row.at_most else ""
    if not known:
        return "" if value is None else "is not allowed"
    value = type(known[0])() if value is None else value
    if (value in row.allowed) if row.allowed else (value not in row.refused):
        return ""
    if value == "":
        return "is missing, which means every one"
    return f"is {str(value).lower() if isinstance(value, bool) else brief(value)}"


def _rule(row: TeamRule, boundary: Boundary) -> Rule:
    def check(workload: Workload) -> Iterator[Finding]:
        return _findings(row, workload.manifest, boundary)

    kinds = ("RayCluster", "RayJob") if row.of is Of.RAY else KINDS
    return Rule(code=row.code, source=f"{BOOK.source}, {row.paths[0]}", kinds=kinds, check=check)


@BOOK.rule("uncounted", "stacks/policies.py", KINDS)
def _whole_workload(workload: Workload) -> Iterator[Finding]:
    return _uncounted(workload.manifest)


_ROWS = {_rule(row, Boundary()): row for row in RULES if row.of not in (Of.SERVICE, Of.SECRET)}
BOOK.rules += _ROWS


def within(boundary: Boundary, rule: Rule) -> Rule:
    """A rule as it holds in a namespace."""
    return _rule(_ROWS[rule], boundary) if rule in _ROWS else rule
