"""Reads the whole state at one moment. What this person may not read is left out, and said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from environment import Environment
from tpuenv.jobs.diagnosis.snapshot import readable
from tpuenv.jobs.job import Job
from tpuenv.jobs.links import read_links
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
    links: Mapping[str, str]  # to the dashboards and alerts


def read_status(cluster: Cluster, environment: Environment, teams: Sequence[str]) -> Status:
    """The slices of all groups, the queues and jobs of these teams. Raises tpuenv.failure.Failed."""
    objects, unread = readable(cluster, ("ClusterQueue", "Node"))
    queues = None if "ClusterQueue" in unread else [item for item in objects if item["kind"] == "ClusterQueue"]
    nodes = None if "Node" in unread else [item for item in objects if item["kind"] == "Node"]
    # A broken node may be busy with a job of any team.
    jobs, refused = read_teams(cluster, teams if nodes is None else [team.name for team in environment.teams])
    groups = {group.name: group for group in environment.groups}
    every = [queue_of(queue, groups) for queue in queues or []]
    quotas = [quota for queue in every for quota in queue.quotas]
    used = {
        name: None if queues is None else sum(quota.used for quota in quotas if quota.group == name) for name in groups
    }
    busy, stuck = _busy(jobs), [job for job in jobs if job.stuck_for]
    notes = [note for kind, note in _NOTES.items() if kind in unread]
    notes += [f"the jobs of team {name} may not be read: {error.said}" for name, error in refused.items()]
    return Status(
        time=datetime.now(timezone.utc),
        slices=tuple(slices_of(group, used[name], nodes, busy, stuck) for name, group in groups.items()),
        queues=None if queues is None else tuple(queue for queue in every if queue.team in teams),
        jobs=tuple(job for job in jobs if job.team in teams),
        notes=tuple(notes),
        links=read_links(cluster),
    )


def _busy(jobs: Sequence[Job]) -> set[str]:
    """The nodes on which hosts of jobs run."""
    return {pod.node for job in jobs for pod in job.pods if pod.has_chips and pod.phase == "Running"}
