"""`tpuenv cancel`: deletes a job, which stops its programs and gives its slices to the next."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

import click

from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.commands.several_jobs import each_job

if TYPE_CHECKING:
    from tpuenv.jobs.job import Job
    from tpuenv.kubernetes.client import Cluster


@command(
    summary="delete jobs: their programs stop, and their slices are free",
    examples=("tpuenv cancel hello-tpu-abc234", "tpuenv cancel maxtext-bq2f6c tensorboard-x4k2aa"),
    notes="It does not ask. What the job has written to the team's bucket stays. Each member of a team can delete all "
    "of the team's jobs. One that cannot be deleted does not keep the others; the exit code is then its own.",
)
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...", help="their names, as `tpuenv jobs` prints them")
@options.value("--team", "TEAM", "only look at the jobs of this team")
def cancel(*, jobs: tuple[str, ...], team: str | None) -> None:
    """Deletes jobs, with their pods and what `tpuenv submit` created with them, whether they wait, run or have ended.
    Their logs go with their pods.
    """
    each_job(jobs, team, "deleting", _deleted)


def _deleted(cluster: Cluster, job: Job) -> str:
    from tpuenv.jobs.table import age

    cluster.delete(job.kind, job.team, job.name)
    return f"Deleted {job}: it was {job.words}, {age(job, datetime.now(timezone.utc))} old."
