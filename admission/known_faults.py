"""Known faults of the versions that are pinned here, which a manifest can meet: a row each.

A row is a note of the answer and no refusal: the workload starts, and may hang later. A test fails when the pinned
version is newer than a row's `until` (tests/admission/test_known_faults.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from admission.workload import PodSet, Workload

_DEFAULT_BACKOFF_LIMIT = 6  # the API server's: pkg/apis/batch/v1/defaults.go


@dataclass(frozen=True, kw_only=True)
class KnownFault:
    """`chart` is in vocabulary/sources.yaml; `until` is the last version that has the fault. `meets` gives the pod sets
    of a workload that can meet it.
    """

    chart: str
    project: str
    until: str
    issues: tuple[str, ...]
    manifest: str
    what: str
    avoid: str
    meets: Callable[[Workload], Iterator[PodSet]]


def _retried_followers(workload: Workload) -> Iterator[PodSet]:
    if workload.kind != "JobSet":
        return
    for pods, job in zip(workload.pod_sets, workload.job_specs, strict=True):
        if pods.exclusive and pods.pods_per_replica > 1 and job.get("backoffLimit").number(_DEFAULT_BACKOFF_LIMIT) > 0:
            yield pods


KNOWN_FAULTS: tuple[KnownFault, ...] = (
    KnownFault(
        chart="jobset",
        project="JobSet",
        until="0.12.0",
        issues=(
            "https://github.com/kubernetes-sigs/jobset/pull/1276",
            "https://github.com/kubernetes-sigs/jobset/pull/1269",
            "https://github.com/kubernetes-sigs/jobset/pull/1266",
        ),
        manifest="exclusive topology with a `backoffLimit` over 0 (without one it is 6) on several pods",
        what="after the first pod of a slice is retried, the others are refused for ever, and the slice is held idle",
        avoid="set backoffLimit: 0, and how often all starts again in spec.failurePolicy.maxRestarts",
        meets=_retried_followers,
    ),
)


def fault_notes(workload: Workload) -> Iterator[str]:
    for fault in KNOWN_FAULTS:
        for pods in fault.meets(workload):
            yield f"{pods.name}: in {fault.project} {fault.until}, {fault.what} ({fault.issues[0]}); {fault.avoid}"
