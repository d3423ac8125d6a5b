"""`tpuenv cancel`: deletes a job, which stops its programs and gives its slices to the next."""

from __future__ import annotations

import sys
from datetime import datetime, timezone

import click

from environment import project
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.jobs.runs import team_names
from tpuenv.terminal.progress import Progress


@command(
    summary="delete a job: its programs stop, and its slices are free",
    examples=("tpuenv cancel hello-tpu-abc234",),
    notes="It does not ask. What the job has written to the team's bucket stays. Each member of a team can delete all "
    "of the team's jobs.",
)
@click.argument("job", metavar="JOB", help="its name, as `tpuenv jobs` prints it")
@options.value("--team", "TEAM", "only look at the jobs of this team")
def cancel(*, job: str, team: str | None) -> None:
    """Deletes a job, with its pods and what `tpuenv submit` created with it, whether it waits, runs or has ended. Its
    logs go with its pods.
    """
    environment = project.load_for_google()
    teams = team_names(environment, team)
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.jobs.find_job import job_named
    from tpuenv.jobs.table import age
    from tpuenv.kubernetes.connection import connect

    with Progress(out=sys.stderr) as progress:
        progress.doing("reading the jobs")
        cluster = connect(environment)
        found = job_named(cluster, job, teams)
        progress.doing(f"deleting {found}")
        cluster.delete(found.kind, found.team, found.name)
    print(f"Deleted {found}: it was {found.words}, {age(found, datetime.now(timezone.utc))} old.")
