"""`tpuenv check`: would a workload be admitted on this environment's queues, and if not, why and what to change."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from cli.project import wanted
from environment import Environment
from environment.admission import Explanation, NotAWorkload, Verdict, explain
from environment.admission.manifest import KINDS
from environment.names import TEAM_ACCOUNT
from environment.nodes import node_objects
from environment.problems import printable
from environment.queues import queue_objects

_MAX_BYTES = 4 << 20

# Kinds that start pods without a queue: Kueue does not look at them, and team namespaces refuse their TPU pods.
_UNQUEUED = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "CronJob", "RayService", "LeaderWorkerSet")


# Kubernetes makes `default` in every namespace.
_ACCOUNTS = ("default", TEAM_ACCOUNT)


class _Loader(yaml.SafeLoader):
    """Refuses a key that is there twice: of the two, YAML readers keep the last and say nothing."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if name in seen:
                raise yaml.MarkedYAMLError(problem=f"'{name}' is there twice; keep one", problem_mark=key.start_mark)
            seen |= {name} - {""}
        return node


class _BadInput(ValueError):
    """The manifest cannot be used; the text is one line for the person who named it."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "check",
        help="say whether, where and why a workload would be admitted",
        description=f"Says whether a {', '.join(KINDS[:-1])} or {KINDS[-1]} would be admitted on the queues of this "
        "environment while they are empty, which slices it gets, or why not and what to change. Nothing is deployed or "
        "asked of a cluster. Several workloads in one file are admitted one after the other. Fields are checked as "
        "kubectl has the API server check them: unknown, missing, of another type.",
        epilog="Exit codes: 0 it would start or wait, 1 it would never start or is refused, 2 the file cannot be used. "
        "Not looked at: jobs that run or wait in the cluster; whether images, ConfigMaps, Secrets and claims exist; "
        "how pods pack onto CPU nodes; values that neither Kueue nor a TPU slice asks about; the program itself.",
    )
    parser.add_argument("manifest", metavar="MANIFEST", help="a YAML file with the workload, or - for standard input")
    parser.add_argument(
        "-n", "--namespace", default="", help="for a manifest that names none; the team's if there is one"
    )


def run(args: argparse.Namespace) -> int:
    environment = wanted()
    try:
        documents = _documents(_read(args.manifest))
        manifests = _workloads(documents)
        namespaces = [_namespace(environment, manifest, args.namespace) for manifest in manifests]
        found = list(_explain_all(environment, manifests, namespaces))
    except (_BadInput, NotAWorkload) as error:
        print(printable(f"{args.manifest}: {error}"), file=sys.stderr)
        return 2
    print("\n\n".join("\n".join(each.lines()) for each in found))
    if len(documents) > len(manifests):
        others = sorted({str(each["kind"]) for each in documents if isinstance(each, dict)} - set(KINDS))
        print(printable(f"note: not looked at: {', '.join(others)}"), file=sys.stderr)
    return 1 if any(each.verdict in (Verdict.NEVER, Verdict.REFUSED) for each in found) else 0


def _read(name: str) -> str:
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(_MAX_BYTES + 1) if sys.stdin else b""
        else:
            with Path(name).open("rb") as stream:
                raw = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise _BadInput("there is no such file") from None
    except (OSError, ValueError) as error:
        raise _BadInput(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(raw) > _MAX_BYTES:
        raise _BadInput("is larger than 4 MiB; that is no manifest")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _BadInput(f"is not UTF-8 (byte {error.start})") from None


def _documents(text: str) -> list[object]:
    try:
        documents = [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise _BadInput(f"is not YAML{where}: {getattr(error, 'problem', None) or str(error)[:100]}") from None
    return [each for document in documents for each in _items(document)]


def _items(document: object) -> list[object]:
    """What is in a List, as `kubectl get -o yaml` writes it; anything else is itself."""
    if isinstance(document, dict) and document.get("kind") == "List" and isinstance(document.get("items"), list):
        return list(document["items"])
    return [document]


def _workloads(documents: list[object]) -> list[dict[str, Any]]:
    """The documents that Kueue queues. Others that belong to a workload, such as Services, are passed over."""
    found = []
    for number, document in enumerate(documents, start=1):
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise _BadInput(f"document {number} is not a Kubernetes object: it has no kind")
        if document["kind"] in _UNQUEUED:
            raise _BadInput(f"kind {document['kind']} is not queued here; use {', '.join(KINDS[:-1])} or {KINDS[-1]}")
        if document["kind"] in KINDS:
            found.append(document)
        elif meant := [kind for kind in KINDS if kind.lower() == document["kind"].lower()]:
            raise _BadInput(f"kind {document['kind']} does not exist; did you mean {meant[0]}?")
    if not found:
        kinds = ", ".join(sorted({str(document["kind"]) for document in documents if isinstance(document, dict)}))
        raise _BadInput(
            f"holds no {', '.join(KINDS[:-1])} or {KINDS[-1]}" + (f", only {kinds}" if kinds else ": it is empty")
        )
    return found


def _namespace(environment: Environment, manifest: dict[str, Any], given: str) -> str:
    metadata = manifest.get("metadata")
    named = metadata.get("namespace") if isinstance(metadata, dict) else None
    teams = [team.name for team in environment.teams]
    if named and given and named != given:
        raise _BadInput(f"is for namespace '{named}', not '{given}'")
    if not named and not given and len(teams) > 1:
        raise _BadInput(f"names no namespace; say which with -n: {', '.join(teams)}")
    return given or teams[0]


def _explain_all(
    environment: Environment, manifests: list[dict[str, Any]], namespaces: list[str]
) -> Iterator[Explanation]:
    """One after the other, each beside those before it."""
    objects = [*queue_objects(environment), *node_objects(environment), *_accounts(environment)]
    for number, (manifest, namespace) in enumerate(zip(manifests, namespaces, strict=True)):
        found = explain(objects, manifest, namespace=namespace)
        if found.verdict == Verdict.ADMITTED and found.cluster_queue:
            objects.append(
                {
                    "kind": "Workload",
                    "metadata": {"name": f"document-{number}", "namespace": namespace},
                    "spec": {"priority": found.priority},
                    "status": {"admission": found.admission()},
                }
            )
        yield found


def _accounts(environment: Environment) -> Iterator[dict[str, Any]]:
    """The service accounts that there are, a team at a time."""
    for team in environment.teams:
        for name in _ACCOUNTS:
            yield {"kind": "ServiceAccount", "metadata": {"name": name, "namespace": team.name}}
