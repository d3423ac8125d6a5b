"""`tpuenv check`: would workloads be admitted on this environment's queues, and if not, why and what to change."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from admission import Explanation, NotAWorkload, Reason, Verdict, explain
from admission.manifest import KINDS
from environment import Environment
from environment.kubernetes.nodes import node_objects
from environment.kubernetes.queues import queue_objects
from environment.project import wanted
from tpuenv.jobs.manifests import Document, documents
from vocabulary.keys import TEAM_ACCOUNT, TPU
from vocabulary.printable import printable

_ANY_OF = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
# Kinds that start pods without a queue: Kueue does not look at them, and team namespaces refuse their TPU pods.
_UNQUEUED = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "LeaderWorkerSet")
# Kinds that make workloads of the kinds that are queued.
_MAKERS = {"CronJob": "Job", "RayCronJob": "RayJob", "RayService": "RayCluster"}
# Kubernetes makes `default` in every namespace.
_ACCOUNTS = ("default", TEAM_ACCOUNT)
_LEVELS = 12  # from a LeaderWorkerSet to the requests of its containers
_NEVER_STARTS = (Verdict.NEVER, Verdict.REFUSED)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "check",
        help="say whether, where and why workloads would be admitted",
        description=f"Says whether each {_ANY_OF} would be admitted on the queues of this environment while they are "
        "empty, which slices it gets, or why not and what to change: everything that is wrong, at once. Nothing is "
        "deployed or asked of a cluster. Several workloads are admitted one after the other. Fields are checked as "
        "kubectl has the API server check them, and the rules of the webhooks of Kueue, JobSet and KubeRay are applied "
        "(docs/admission-rules.md lists them all).",
        epilog="Exit codes, the worst of all documents: 0 it would start or wait, 1 it would never start or is "
        "refused, 2 a document cannot be used. PriorityClasses, ServiceAccounts and Workloads in the files count as "
        "there. Not looked at: jobs that run or wait in the cluster; whether images, ConfigMaps, Secrets and claims "
        "exist; how pods pack onto CPU nodes; values that no rule asks about; the program itself.",
    )
    parser.add_argument(
        "manifests",
        metavar="MANIFEST",
        nargs="+",
        help="a YAML file, a folder of them, or - for standard input",
    )
    parser.add_argument(
        "-n", "--namespace", default="", help="for manifests that name none; the team's if there is one"
    )


class _Answers:
    """What is said of each document, and the worst of it."""

    def __init__(self, *, several: bool) -> None:
        self.several = several  # files: each answer begins with its own
        self.answers = 0
        self.code = 0
        self.beside: dict[str, set[str]] = {}  # by file: the kinds that are none of ours

    def explained(self, file: str, found: Explanation) -> None:
        first, *rest = found.lines()
        print("\n" * bool(self.answers) + "\n".join([f"{file}: {first}" if self.several else first, *rest]))
        self.answers += 1
        self.code = max(self.code, int(found.verdict in _NEVER_STARTS))

    def unusable(self, file: str, problem: str) -> None:
        print(printable(f"{file}: {problem}"), file=sys.stderr)
        self.code = 2


def run(args: argparse.Namespace) -> int:
    environment = wanted()
    found = [document for name in args.manifests for document in documents(name)]
    answers = _Answers(several=len({document.file for document in found}) > 1)
    objects = [*queue_objects(environment), *node_objects(environment), *_accounts(environment), *_others(found)]
    for document in found:
        try:
            _answer(environment, answers, objects, document, args.namespace)
        except NotAWorkload as error:
            answers.unusable(document.file, str(error))
    _conclude(answers, args.manifests)
    return answers.code


def _answer(
    environment: Environment,
    answers: _Answers,
    objects: list[dict[str, Any]],
    document: Document,
    namespace: str,
) -> None:
    if document.problem:
        raise NotAWorkload(document.problem)
    manifest = document.value
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if not isinstance(kind, str):
        raise NotAWorkload(f"document {document.number} is not a Kubernetes object: it has no kind")
    if kind in KINDS:
        name = _namespace(environment, manifest, namespace)
        found = explain(objects, manifest, namespace=name)
        answers.explained(document.file, found)
        if found.verdict == Verdict.ADMITTED and found.cluster_queue:
            objects.append(_admitted(found, f"{document.file}-{document.number}", name))
    elif kind in _MAKERS:
        raise NotAWorkload(f"kind {kind} is not queued itself; check a {_MAKERS[kind]} such as it makes")
    elif kind in _UNQUEUED and _asks_for_chips(manifest):
        answers.explained(document.file, _chips_without_a_queue(manifest, kind))
    elif meant := [each for each in KINDS if each.lower() == kind.lower()]:
        raise NotAWorkload(f"kind {kind} does not exist; did you mean {meant[0]}?")
    else:
        answers.beside.setdefault(document.file, set()).add(kind)


def _conclude(answers: _Answers, names: list[str]) -> None:
    """What was passed over; an error where that is all there is."""
    kinds = sorted({kind for beside in answers.beside.values() for kind in beside})
    if answers.answers or answers.code:
        if kinds:
            print(printable(f"note: not looked at: {', '.join(kinds)}"), file=sys.stderr)
        return
    unqueued = [kind for kind in kinds if kind in _UNQUEUED]
    if unqueued:
        answers.unusable(", ".join(names), f"kind {unqueued[0]} is not queued here; use {_ANY_OF}")
    else:
        answers.unusable(
            ", ".join(names), f"holds no {_ANY_OF}" + (f", only {', '.join(kinds)}" if kinds else ": it is empty")
        )


def _namespace(environment: Environment, manifest: dict[str, Any], given: str) -> str:
    metadata = manifest.get("metadata")
    named = metadata.get("namespace") if isinstance(metadata, dict) else None
    teams = [team.name for team in environment.teams]
    if named and given and named != given:
        raise NotAWorkload(f"is for namespace '{named}', not '{given}'")
    if not named and not given and len(teams) > 1:
        raise NotAWorkload(f"names no namespace; say which with -n: {', '.join(teams)}")
    return given or teams[0]


def _admitted(found: Explanation, name: str, namespace: str) -> dict[str, Any]:
    """What one workload holds while those after it are looked at."""
    return {
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"priority": found.priority},
        "status": {"admission": found.admission()},
    }


def _accounts(environment: Environment) -> Iterator[dict[str, Any]]:
    """The service accounts that there are, a team at a time."""
    for team in environment.teams:
        for name in _ACCOUNTS:
            yield {"kind": "ServiceAccount", "metadata": {"name": name, "namespace": team.name}}


def _others(found: list[Document]) -> Iterator[dict[str, Any]]:
    """What the files bring themselves that workloads ask for; only what can be read of it."""
    for document in found:
        manifest = document.value if isinstance(document.value, dict) else {}
        kind, metadata = manifest.get("kind"), manifest.get("metadata")
        if kind not in ("PriorityClass", "ServiceAccount", "Workload") or not isinstance(metadata, dict):
            continue
        name, namespace, value = metadata.get("name"), metadata.get("namespace", ""), manifest.get("value", 0)
        if isinstance(name, str) and isinstance(namespace, str) and type(value) is int and abs(value) < 2**31:
            yield {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "value": value}


def _asks_for_chips(value: object, levels: int = _LEVELS) -> bool:
    """Whether any container in it does. YAML's aliases may make it go round and round."""
    if isinstance(value, dict) and levels:
        return any(
            (key in ("requests", "limits") and isinstance(each, dict) and TPU in each)
            or _asks_for_chips(each, levels - 1)
            for key, each in value.items()
        )
    return isinstance(value, list) and bool(levels) and any(_asks_for_chips(each, levels - 1) for each in value)


def _chips_without_a_queue(manifest: dict[str, Any], kind: str) -> Explanation:
    metadata = manifest.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    reason = Reason(
        verdict=Verdict.REFUSED if kind == "Pod" else Verdict.NEVER,
        code="chips-without-a-queue",
        where="",
        what=f"asks for {TPU} past the queue; the namespaces of teams take such pods from Kueue alone"
        + (f", so none of this {kind} is made" if kind != "Pod" else ""),
        fix=f"make it a {_ANY_OF}",
    )
    return Explanation(workload=f"{kind} {name}", verdict=reason.verdict, reasons=(reason,))
