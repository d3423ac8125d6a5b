"""Why a job holds quota and lacks pods, for longer than they take: nobody uses those chips."""

from __future__ import annotations

from collections.abc import Iterator

from tpuenv.jobs.diagnosis.cause import Cause, condition_words, shown
from tpuenv.jobs.diagnosis.creation import creation_causes
from tpuenv.jobs.diagnosis.snapshot import Snapshot
from tpuenv.jobs.job import Job
from tpuenv.kubernetes.objects import condition_of
from vocabulary.printable import counted, listed

_MOST = 4  # pods and nodes that are named


def stuck_causes(snapshot: Snapshot) -> Iterator[Cause]:
    """What keeps its pods from being created, where the events say so; and what it holds."""
    job = snapshot.job
    evicted, ready = (condition_of(job.workload, type_) for type_ in ("Evicted", "PodsReady"))
    said = [condition_words("Workload", condition) for condition in (evicted, ready) if condition]
    stays = [f"Pod {pod.name}: is to have ended at {pod.deleted}, on node {pod.node}" for pod in job.leaving[:_MOST]]
    if evicted.get("status") != "True":
        yield from creation_causes(snapshot)
    yield Cause(
        code="stuck",
        cause=f"it holds {_held(job)}, {_why(job)}",
        fix=f"`tpuenv requeue {job.name}` frees that, and starts it again from its last checkpoint",
        evidence=(*said, *stays),
    )


def _held(job: Job) -> str:
    if not job.slices:
        return "its quota"
    return counted(job.slices, "slice") + (f" of {job.group}" if job.group else "")


def _why(job: Job) -> str:
    evicted = condition_of(job.workload, "Evicted")
    if job.leaving:
        nodes = listed(list(dict.fromkeys(shown(pod.node) for pod in job.leaving if pod.node)), most=_MOST)
        return f"and {counted(len(job.leaving), 'pod')} that should have ended{f' on {nodes}' if nodes else ''} did not"
    if evicted.get("status") == "True":
        return f"though Kueue has stopped it ({shown(evicted.get('reason'))})"
    noun = "host" if job.slices else "pod"
    return f"and only {max(job.hosts, 1) - job.missing} of {counted(job.hosts, noun)} have a pod"
