"""The manifests and fleets of tests/admission for tests that change them, and Workloads that hold chips."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from admission import Explanation
from tests.yaml_files import documents

DATA = Path(__file__).parent / "admission"
CASES = DATA / "cases"

Object = dict[str, Any]


@cache
def _case(name: str) -> Object:
    _, manifest = documents(CASES / f"{name}.yaml")
    return manifest  # type: ignore[no-any-return]


def manifest_of(name: str) -> Object:
    return copy.deepcopy(_case(name))


@cache
def _read_fleet(name: str) -> list[Object]:
    return documents(DATA / "fleets" / f"{name}.yaml")


def fleet(name: str = "one-team") -> list[Object]:
    return copy.deepcopy(_read_fleet(name))


def autopilot_fleet() -> list[Object]:
    """The fleet of one team on an Autopilot cluster."""
    objects = fleet()
    (cpu,) = (item for item in objects if (item["kind"], item["metadata"]["name"]) == ("ResourceFlavor", "cpu"))
    cpu["metadata"]["annotations"] = {"tpuenv/cluster-mode": "autopilot"}
    return objects


def codes_of(explanation: Explanation) -> list[str]:
    return [reason.code for reason in explanation.reasons]


def pod_of(manifest: Object, job: int = 0) -> Object:
    return manifest["spec"]["replicatedJobs"][job]["template"]["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def queue_of(objects: list[Object], name: str) -> Object:
    return next(item for item in objects if (item["kind"], item["metadata"]["name"]) == ("ClusterQueue", name))


def holder(name: str, queue: str, chips: int, *, priority: int = 0, flavor: str = "tpu") -> Object:
    """A Workload that holds chips and nothing else."""
    pod_set = {"name": "main", "flavors": {"google.com/tpu": flavor}, "resourceUsage": {"google.com/tpu": str(chips)}}
    return {
        "kind": "Workload",
        "metadata": {"name": name, "namespace": queue},
        "spec": {"priority": priority},
        "status": {"admission": {"clusterQueue": queue, "podSetAssignments": [pod_set]}},
    }


def train(namespace: str, *, slices: int = 1, priority: str = "") -> Object:
    manifest = manifest_of("jobset-chips-only")
    manifest["metadata"]["namespace"] = namespace
    if priority:
        manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = priority
    manifest["spec"]["replicatedJobs"][0]["replicas"] = slices
    return manifest


@dataclass(frozen=True, kw_only=True)
class RuleCase:
    """One manifest of tests/admission with one thing changed, and the one rule that it then breaks."""

    code: str
    of: str  # the manifest that is changed
    change: Object
    says: str = ""
    also: tuple[str, ...] = ()  # codes of what comes with it
    autopilot: bool = False  # whether the cluster is one
    place: str = ""  # file and number

    def __str__(self) -> str:
        return f"{self.place}-{self.code}"

    def manifest(self) -> Object:
        return changed(manifest_of(self.of), self.change)


@cache
def rule_cases() -> tuple[RuleCase, ...]:
    """Those of tests/admission/rules, in order."""
    cases = []
    for file in sorted((DATA / "rules").glob("*.yaml")):
        for number, described in enumerate(documents(file)[0]):
            place = f"{file.stem}-{number}"
            cases.append(RuleCase(**{**described, "also": tuple(described.get("also", ())), "place": place}))
    return tuple(cases)


def changed(manifest: Object, changes: Object) -> Object:
    """The manifest itself, with changes of fields or of places, which have short names."""
    places = _places(manifest)
    for place, change in changes.items():
        if place in places:
            _merge(places[place], change)
        else:
            _merge(manifest, {place: change})
    return manifest


def _places(manifest: Object) -> Object:
    """Short names: job (the spec of the first), pod, container, ray (what describes the Ray cluster), head, group."""
    spec = manifest.get("spec", {})
    if manifest["kind"] in ("Job", "JobSet"):
        job = spec if manifest["kind"] == "Job" else spec["replicatedJobs"][0]["template"]["spec"]
        pod = job["template"]["spec"]
        return {"job": job, "template": job["template"], "pod": pod, "container": pod["containers"][0]}
    ray = spec if manifest["kind"] == "RayCluster" else spec.get("rayClusterSpec")
    if not ray:
        return {}
    pod = ray["headGroupSpec"]["template"]["spec"]
    return {
        "ray": ray,
        "head": ray["headGroupSpec"],
        "group": ray["workerGroupSpecs"][0],
        "pod": pod,
        "container": pod["containers"][0],
    }


def _merge(holder: Any, change: Object) -> None:
    """Into mappings by key and into lists by position; None takes away."""
    for key, value in change.items():
        known = key in holder if isinstance(holder, dict) else key < len(holder)
        if value is None:
            del holder[key]
        elif isinstance(value, dict) and known and isinstance(holder[key], (dict, list)):
            _merge(holder[key], value)
        elif isinstance(holder, list) and not known:
            holder.append(value)
        else:
            holder[key] = value
