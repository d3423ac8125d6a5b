"""Finds a job by its name, among those of the teams whose jobs may be read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from environment.fleet.values import meant
from tpuenv.failure import WrongArgument
from tpuenv.jobs.job import Job
from tpuenv.jobs.read_jobs import read_teams
from tpuenv.kubernetes.client import Cluster
from vocabulary.printable import quoted


def job_named(cluster: Cluster, name: str, teams: Sequence[str]) -> Job:
    """The job of that name. Raises WrongArgument where none or several teams have one, and Failed."""
    return job_among(*read_teams(cluster, teams), name, teams)


def job_among(jobs: Sequence[Job], refused: Collection[str], name: str, teams: Sequence[str]) -> Job:
    """The job of that name among those that were read; `refused` are the teams whose jobs were not. As job_named."""
    named = [job for job in jobs if job.name == name]
    if len({job.team for job in named}) > 1:
        raise WrongArgument(f"several teams have a job {quoted(name)}: {', '.join(map(str, named))}; add --team")
    # A RayJob makes a RayCluster, and a JobSet Jobs: what is the person's own is the first kind.
    if named:
        return named[0]
    unread = f"; those of {', '.join(refused)} may not be read" if refused else ""
    if not jobs:
        raise WrongArgument(f"there is no job {quoted(name)}, nor any other of {', '.join(teams)}{unread}")
    raise WrongArgument(f"there is no job {quoted(name)}{meant(name, [job.name for job in jobs])}{unread}")
