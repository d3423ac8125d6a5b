"""The kinds of pods that a job asks for, by what its manifest says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tpuenv.jobs.pod import has_chips
from tpuenv.kubernetes.objects import Object


@dataclass(frozen=True, kw_only=True)
class Part:
    """Pods that are alike: `replicas` times `size` pods. With chips, a replica is a slice."""

    replicas: int
    size: int
    has_chips: bool
    selector: Object


def parts_of(kind: str, body: Object, workload: Object) -> list[Part]:
    """Those of a JobSet, Job, RayJob or RayCluster; where its manifest was not read, those of Kueue's Workload."""
    spec = body.get("spec") or {}
    if kind == "JobSet":
        items = [(item, item.get("template") or {}) for item in spec.get("replicatedJobs") or []]
        return [_of_job(int(item.get("replicas", 1)), template.get("spec") or {}) for item, template in items]
    if kind == "Job":
        return [_of_job(1, spec)]
    if kind in ("RayJob", "RayCluster") and spec:
        return list(_of_ray((spec.get("rayClusterSpec") or {}) if kind == "RayJob" else spec))
    sets = (workload.get("spec") or {}).get("podSets") or []
    return [_part(1, int(item.get("count", 1)), item) for item in sets]


def _of_job(replicas: int, spec: Object) -> Part:
    return _part(replicas, int(spec.get("parallelism", 1)), spec)


def _of_ray(spec: Object) -> Iterator[Part]:
    """Its workers: the head runs none of the program's tasks on chips."""
    for group in spec.get("workerGroupSpecs") or []:
        yield _part(int(group.get("replicas") or 0), int(group.get("numOfHosts") or 1), group)


def _part(replicas: int, size: int, holder: Object) -> Part:
    pod = (holder.get("template") or {}).get("spec") or {}
    return Part(replicas=replicas, size=size, has_chips=has_chips(pod), selector=pod.get("nodeSelector") or {})
