"""`tpuenv cancel`: deletes a job, which stops its programs and gives its slices to the next."""

from __future__ import annotations

import sys
from datetime import datetime, timezone

import click

from environment import project
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.failure import Failed
from tpuenv.jobs.runs import team_names
from tpuenv.terminal.progress import Progress


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
    environment = project.load_for_google()
    teams = team_names(environment, team)
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.jobs.find_job import job_among
    from tpuenv.jobs.read_jobs import read_teams
    from tpuenv.jobs.table import age
    from tpuenv.kubernetes.connection import connect

    with Progress(out=sys.stderr) as progress:
        progress.doing("reading the jobs")
        cluster = connect(environment)
        read, refused = read_teams(cluster, teams)
        failures: list[Failed] = []
        for name in dict.fromkeys(jobs):
            try:
                job = job_among(read, refused, name, teams)
                progress.doing(f"deleting {job}")
                cluster.delete(job.kind, job.team, job.name)
            except Failed as failure:
                failures.append(failure)
                continue
            progress.doing("")
            print(f"Deleted {job}: it was {job.words}, {age(job, datetime.now(timezone.utc))} old.", flush=True)
    if failures:
        together = Failed("\n".join(map(str, failures)))
        together.exit_code = failures[0].exit_code
        raise together
