"""Reads the whole state at one moment. What this person may not read is left out, and said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from environment import Environment
from tpuenv.jobs.diagnosis.snapshot import readable
from tpuenv.jobs.job import Job
from tpuenv.jobs.read_jobs import read_teams
from tpuenv.kubernetes.client import Cluster
from tpuenv.status.queues import Queue, queue_of
from tpuenv.status.slices import Slices, slices_of

_NOTES = {
    "Node": "not allowed to read nodes: slices' health not shown",
    "ClusterQueue": "not allowed to read ClusterQueues: quotas and what other teams use are not shown",
}


@dataclass(frozen=True, kw_only=True)
class Status:
    """`jobs` are those of the teams that may be read, the oldest first. `queues` is None where they may not be."""

    time: datetime
    slices: tuple[Slices, ...]
    queues: tuple[Queue, ...] | None
    jobs: tuple[Job, ...]
    notes: tuple[str, ...]


def read_status(cluster: Cluster, environment: Environment, teams: Sequence[str]) -> Status:
    """The slices of all groups, the queues and jobs of these teams. Raises tpuenv.failure.Failed."""
    jobs, refused = read_teams(cluster, teams)
    objects, unread = readable(cluster, ("ClusterQueue", "Node"))
    groups = {group.name: group for group in environment.groups}
    queues = None if "ClusterQueue" in unread else [item for item in objects if item["kind"] == "ClusterQueue"]
    nodes = None if "Node" in unread else [item for item in objects if item["kind"] == "Node"]
    every = [queue_of(queue, groups) for queue in queues or []]
    used = {
        name: None
        if queues is None
        else round(
            sum(quota.used for queue in every for quota in queue.quotas if quota.group == name) * group.slice.chips
        )
        for name, group in groups.items()
    }
    notes = [note for kind, note in _NOTES.items() if kind in unread]
    notes += [f"the jobs of team {name} may not be read: {error.said}" for name, error in refused.items()]
    return Status(
        time=datetime.now(timezone.utc),
        slices=tuple(slices_of(group, used[name], nodes, _busy(jobs)) for name, group in groups.items()),
        queues=None if queues is None else tuple(queue for queue in every if queue.team in teams),
        jobs=tuple(jobs),
        notes=tuple(notes),
    )


def _busy(jobs: Sequence[Job]) -> list[str]:
    """The nodes on which hosts of jobs run."""
    return [
        str((pod.body.get("spec") or {}).get("nodeName") or "")
        for job in jobs
        for pod in job.pods
        if pod.has_chips and pod.phase == "Running"
    ]
