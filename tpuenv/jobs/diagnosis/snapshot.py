"""What is read of a cluster to say why a job does not run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tpuenv.jobs.job import Job
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.errors import ApiError
from tpuenv.kubernetes.objects import Object, name_of

# Members of a team may read all of these but nodes. stacks/access.py
_KINDS = ("ClusterQueue", "ResourceFlavor", "WorkloadPriorityClass", "Node")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A job, and what decides when it runs. Of what was not read there is nothing, and `unread` says why, by kind.

    `others` are the jobs of the teams that may be read, `events` those about the job, its pods and its Workload, the
    newest last.
    """

    job: Job
    others: tuple[Job, ...] = ()
    events: tuple[Object, ...] = ()
    objects: tuple[Object, ...] = ()  # LocalQueues of the team, ClusterQueues, flavors, priority classes, nodes
    unread: Mapping[str, str] = field(default_factory=dict)

    def of_kind(self, kind: str) -> list[Object]:
        return [item for item in self.objects if item.get("kind") == kind]

    def named(self, kind: str, name: str) -> Object:
        """The object of that name; empty where there is none."""
        return next((item for item in self.of_kind(kind) if name_of(item) == name), {})


def read_snapshot(cluster: Cluster, job: Job, others: Sequence[Job] = ()) -> Snapshot:
    """Raises Failed. What this person may not read is left out."""
    objects, unread = readable(cluster, _KINDS)
    return Snapshot(
        job=job,
        others=tuple(others),
        events=events_of(cluster, job),
        objects=(*cluster.all("LocalQueue", job.team), *objects),
        unread=unread,
    )


def readable(cluster: Cluster, kinds: Iterable[str]) -> tuple[list[Object], dict[str, str]]:
    """The objects of these cluster-wide kinds, and why those of other kinds may not be read. Raises Failed."""
    objects: list[Object] = []
    unread = {}
    for kind in kinds:
        try:
            objects += cluster.all(kind)
        except ApiError as error:
            if error.code != 403:
                raise
            unread[kind] = error.said
    return objects, unread


def events_of(cluster: Cluster, job: Job) -> tuple[Object, ...]:
    """The events about a job, its Jobs and pods, and its Workload, the newest last.

    https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
    """
    workload = name_of(job.workload)

    def is_about(event: Object) -> bool:
        name = str((event.get("involvedObject") or {}).get("name") or "")
        return name in (job.name, workload) or name.startswith(f"{job.name}-")

    return tuple(sorted(filter(is_about, cluster.all("Event", job.team)), key=time_of))


def time_of(event: Object) -> str:
    """When it was last seen, in order as text."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    created = (event.get("metadata") or {}).get("creationTimestamp")
    return next((str(time)[:19] for time in (*times, created) if time), "")
