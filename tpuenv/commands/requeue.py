"""`tpuenv requeue`: deletes a job and creates it again, so that it starts on the next free slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.commands.several_jobs import each_job

if TYPE_CHECKING:
    from tpuenv.jobs.job import Job
    from tpuenv.kubernetes.client import Cluster


@command(
    summary="start jobs that are stuck or hang again, on the next free slices",
    examples=("tpuenv requeue maxtext-bq2f6c", "tpuenv requeue maxtext-bq2f6c hello-tpu-abc234 --team research"),
    notes="""\
It does not ask. The job gets the same name, goes to the end of its team's queue by its age, and goes on from its last
checkpoint if its program writes any; its logs go with its pods. What `tpuenv submit` created with it is created again,
too. If anything fails in between, its manifests are in a file that the message names, and nothing is lost.

A job that waits, or has ended, is refused. One that cannot be started again keeps no other; the exit code is then its
own.
""",
)
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...", help="their names, as `tpuenv jobs` prints them")
@options.value("--team", "TEAM", "only look at the jobs of this team")
def requeue(*, jobs: tuple[str, ...], team: str | None) -> None:
    """Deletes jobs and creates them again, by the same names: for one that holds slices without pods (`tpuenv status`
    calls it stuck), or whose program hangs.
    """
    each_job(jobs, team, "starting again", _requeued)


def _requeued(cluster: Cluster, job: Job) -> str:
    from tpuenv.jobs.requeue import requeue as again

    was = job.words
    return f"Requeued {again(cluster, job)}: it was {was}, and waits for the next free slices."
