"""The manifests and fleets of tests/admission for tests that change them, and Workloads that hold chips."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from environment.admission import Explanation

CASES = Path(__file__).parent / "admission"

Object = dict[str, Any]


@cache
def _case(name: str) -> Object:
    _, manifest = yaml.safe_load_all((CASES / f"{name}.yaml").read_text(encoding="utf-8"))
    return manifest  # type: ignore[no-any-return]


def manifest_of(name: str) -> Object:
    return copy.deepcopy(_case(name))


@cache
def _read_fleet(name: str) -> list[Object]:
    return list(yaml.safe_load_all((CASES / "fleets" / f"{name}.yaml").read_text(encoding="utf-8")))


def fleet(name: str = "one-team") -> list[Object]:
    return copy.deepcopy(_read_fleet(name))


def codes_of(found: Explanation) -> list[str]:
    return [reason.code for reason in found.reasons]


def pod_of(manifest: Object, job: int = 0) -> Object:
    return manifest["spec"]["replicatedJobs"][job]["template"]["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def queue_of(objects: list[Object], name: str) -> Object:
    return next(each for each in objects if (each["kind"], each["metadata"]["name"]) == ("ClusterQueue", name))


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
