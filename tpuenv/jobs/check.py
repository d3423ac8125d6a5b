"""Whether the workloads of a list of documents would be admitted on the environment's queues, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from admission import Explanation, NotAWorkload, Reason, Verdict, explain
from admission.boundary import Boundary, findings_of
from admission.workload import KINDS
from environment import Environment
from environment.kubernetes.nodes import node_objects
from environment.kubernetes.queues import queue_objects
from environment.kubernetes.team_objects import default_requests, namespace
from tpuenv.jobs.manifests import Document
from vocabulary.keys import TPU

ANY_KIND = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"

# Kinds that start pods without a queue: Kueue ignores them, and the namespaces of teams refuse their TPU pods.
UNQUEUED = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "LeaderWorkerSet")

# Kinds that create workloads of the kinds that are queued.
_TEMPLATES = {"CronJob": "Job", "RayCronJob": "RayJob", "RayService": "RayCluster"}

# Kinds beside the workloads of which the namespaces of teams do not take all.
_BOUND = ("Secret", "Service")

# Kinds that workloads refer to by name: in the same files they count as there.
_REFERENCES = ("ServiceAccount", "Workload")

_LEVELS = 12  # from a LeaderWorkerSet to the requests of its containers


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What there is to say of one document: an explanation, or why it cannot be used, or its kind if it is ignored.

    `repeats` is where an earlier document is the same workload, by kind, namespace and name.
    """

    file: str
    explanation: Explanation | None = None
    problem: str = ""
    ignored_kind: str = ""
    repeats: bool = False


def answers(environment: Environment, documents: Sequence[Document], namespace: str) -> Iterator[Answer]:
    """An answer to every document. What is admitted holds its quota while those after it are checked.

    `namespace` is that of manifests that name none; "" is the only team's.
    """
    objects = [
        *queue_objects(environment),
        *node_objects(environment),
        *_in_namespaces(environment),
        *_references(documents),
    ]
    workloads: set[str] = set()
    for document in documents:
        try:
            answer = _answer(environment, objects, document, namespace)
        except NotAWorkload as error:
            answer = Answer(file=document.file, problem=str(error))
        if answer.explanation and _name(document.value):
            workload = answer.explanation.workload
            answer = replace(answer, repeats=workload in workloads)
            workloads.add(workload)
        yield answer


def _answer(environment: Environment, objects: list[dict[str, Any]], document: Document, namespace: str) -> Answer:
    if document.problem:
        raise NotAWorkload(document.problem)
    manifest = document.value
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if not isinstance(kind, str):
        raise NotAWorkload(f"document {document.number} is not a Kubernetes object: it has no kind")
    if kind in KINDS:
        workload_namespace = _namespace(environment, manifest, namespace)
        explanation = explain(objects, manifest, namespace=workload_namespace)
        if explanation.verdict == Verdict.ADMITTED and explanation.cluster_queue:
            objects.append(_admitted(explanation, f"{document.file}-{document.number}", workload_namespace))
        return Answer(file=document.file, explanation=explanation)
    if kind in _TEMPLATES:
        raise NotAWorkload(f"kind {kind} is not queued itself; check a {_TEMPLATES[kind]} such as it creates")
    if kind in UNQUEUED and _requests_chips(manifest):
        return Answer(file=document.file, explanation=_chips_without_a_queue(manifest, kind))
    if kind in _BOUND and (refused := _refused(environment, manifest, namespace)):
        return Answer(file=document.file, explanation=refused)
    if meant := [known for known in KINDS if known.lower() == kind.lower()]:
        raise NotAWorkload(f"kind {kind} does not exist; did you mean {meant[0]}?")
    return Answer(file=document.file, ignored_kind=kind)


def _refused(environment: Environment, manifest: dict[str, Any], given: str) -> Explanation | None:
    """Why the namespaces of teams take no such object; None if they do, or it is for another namespace."""
    named = _named(manifest) or given
    if named and named not in {team.name for team in environment.teams}:
        return None
    found = findings_of(manifest, Boundary())
    reasons = tuple(
        Reason(verdict=Verdict.REFUSED, code="boundary", where=where, what=what, fix=fix) for where, what, fix in found
    )
    workload = f"{manifest['kind']} {_name(manifest)}"
    return Explanation(workload=workload, verdict=Verdict.REFUSED, reasons=reasons) if reasons else None


def _namespace(environment: Environment, manifest: dict[str, Any], given: str) -> str:
    named = _named(manifest)
    teams = [team.name for team in environment.teams]
    if named and given and named != given:
        raise NotAWorkload(f"is for namespace '{named}', not '{given}'")
    if not named and not given and len(teams) > 1:
        raise NotAWorkload(f"names no namespace; say which with -n: {', '.join(teams)}")
    return given or teams[0]


def _named(manifest: dict[str, Any]) -> object:
    """The namespace that it names, if any."""
    metadata = manifest.get("metadata")
    return metadata.get("namespace") if isinstance(metadata, dict) else None


def _name(manifest: dict[str, Any]) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _admitted(explanation: Explanation, name: str, namespace: str) -> dict[str, Any]:
    """The Workload that Kueue would write of an admitted workload."""
    return {
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"priority": explanation.priority},
        "status": {"admission": explanation.admission()},
    }


def _in_namespaces(environment: Environment) -> Iterator[dict[str, Any]]:
    """The namespaces of the teams, and what is there that decides of workloads. Kubernetes creates the
    account `default` in every one.
    """
    for team in environment.teams:
        yield from (namespace(environment, team), default_requests(team))
        for name in ("default", environment.names.team_account):
            yield {"kind": "ServiceAccount", "metadata": {"name": name, "namespace": team.name}}


def _references(documents: Sequence[Document]) -> Iterator[dict[str, Any]]:
    """The objects in the documents that workloads refer to, as far as they can be read."""
    for document in documents:
        manifest = document.value if isinstance(document.value, dict) else {}
        kind, metadata = manifest.get("kind"), manifest.get("metadata")
        if kind not in _REFERENCES or not isinstance(metadata, dict):
            continue
        name, namespace, value = metadata.get("name"), metadata.get("namespace", ""), manifest.get("value", 0)
        if isinstance(name, str) and isinstance(namespace, str) and type(value) is int and abs(value) < 2**31:
            yield {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "value": value}


def _requests_chips(value: object, levels: int = _LEVELS) -> bool:
    """Whether any container in it does. YAML's aliases may form a circle."""
    if isinstance(value, dict) and levels:
        return any(
            (key in ("requests", "limits") and isinstance(field, dict) and TPU in field)
            or _requests_chips(field, levels - 1)
            for key, field in value.items()
        )
    return isinstance(value, list) and bool(levels) and any(_requests_chips(item, levels - 1) for item in value)


def _chips_without_a_queue(manifest: dict[str, Any], kind: str) -> Explanation:
    none_created = "" if kind == "Pod" else f", so none of this {kind} is created"
    reason = Reason(
        verdict=Verdict.REFUSED if kind == "Pod" else Verdict.NEVER,
        code="chips-without-a-queue",
        where="",
        what=f"asks for {TPU} past the queue; the namespaces of teams take such pods from Kueue alone{none_created}",
        fix=f"make it a {ANY_KIND}",
    )
    return Explanation(workload=f"{kind} {_name(manifest)}", verdict=reason.verdict, reasons=(reason,))
