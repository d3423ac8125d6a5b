"""The answer of `tpuenv why` for people: the cause with its fix, what proves it, the log, and what else is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from tpuenv.jobs.diagnosis.diagnose import diagnose
from tpuenv.jobs.diagnosis.snapshot import Snapshot
from tpuenv.jobs.job import Job
from tpuenv.jobs.log import Position, new_lines
from tpuenv.jobs.pod import Pod
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.errors import ApiError, Unreachable

_LAST_LINES = 10
_MOST = 4  # further causes


def answer(cluster: Cluster, snapshot: Snapshot) -> Iterator[str]:
    """The lines; the first has the cause and what to do. Raises Failed."""
    first, *others = diagnose(snapshot)
    job = snapshot.job
    yield f"{job}, {job.words}: {first}"
    yield from (f"  {line}" for line in first.evidence)
    if first.code in _WITH_LOG and first.pod:
        yield from _log(cluster, job, first.pod)
    for cause in others[:_MOST]:
        yield f"  also: {cause}"
    for kind, said in snapshot.unread.items():
        yield f"  note: not allowed to read {_PLURALS.get(kind, kind)}: {_UNKNOWN.get(kind, said)}"


_WITH_LOG = ("crash", "crash-loop")
_PLURALS = {"Node": "nodes", "ClusterQueue": "ClusterQueues", "ResourceFlavor": "ResourceFlavors"}
_UNKNOWN = {
    "Node": "whether the machines are healthy is not known",
    "ClusterQueue": "quotas and what other teams use are not known",
    "ResourceFlavor": "which labels the slices have is not known",
    "WorkloadPriorityClass": "priorities are not known",
}


def _log(cluster: Cluster, job: Job, pod: Pod) -> Iterator[str]:
    yield f"  the last lines of its log (pod {pod.name}):"
    # Of a lost node, which would be asked again and again.
    lines = last_lines(cluster.with_little_patience(), job, pod, lines=_LAST_LINES)
    yield from (f"    {line}" for line in lines)


def last_lines(cluster: Cluster, job: Job, pod: Pod, *, lines: int) -> Iterator[str]:
    """The end of what a pod has logged; why there is none, where there is none: its node may be gone."""
    try:
        with closing(cluster.log(job.team, pod.name, container=pod.container, tail=lines)) as log:
            yield from new_lines(log, Position())
    except ApiError as error:
        yield f"none: {error.said}"
    except Unreachable as error:
        yield f"none: {error}"
