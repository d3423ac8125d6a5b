"""`tpuenv why`: why a job does not run, and what to do."""

from __future__ import annotations

import sys

import click

from environment import project
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.jobs.runs import team_names
from tpuenv.terminal.progress import Progress
from vocabulary.printable import printable


@command(
    summary="say why a job does not run, and what to do",
    examples=("tpuenv why hello-tpu-abc234", "tpuenv why train --team research"),
    notes="""\
The first line has the cause and what to do about it. Below are what Kubernetes, Kueue or Google said, the last lines of
the log of a host whose program failed, and what else is wrong, in the order in which it matters. Nothing is changed.

Exit codes: 0 it was answered, 1 the cluster could not be read, 2 there is no such job.
""",
)
@click.argument("job", metavar="JOB", help="its name, as `tpuenv jobs` prints it")
@options.value("--team", "TEAM", "only look at the jobs of this team")
def why(*, job: str, team: str | None) -> None:
    """Reads the job, its queue, its pods and their events, and says why it does not run or how it failed: no such
    queue, quota and who has it, who stopped it, a label that no slice has, no machines at Google, images, service
    accounts, volumes, webhooks, a host that is not ready, a program that ends.
    """
    environment = project.load_for_google()
    teams = team_names(environment, team)
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.jobs.diagnosis.answer import answer
    from tpuenv.jobs.diagnosis.snapshot import read_snapshot
    from tpuenv.jobs.find_job import job_among
    from tpuenv.jobs.read_jobs import read_teams
    from tpuenv.kubernetes.connection import connect

    with Progress(out=sys.stderr) as progress:
        progress.doing("reading the job")
        cluster = connect(environment)
        jobs, refused = read_teams(cluster, teams)
        snapshot = read_snapshot(cluster, job_among(jobs, refused, job, teams), jobs)
        lines = list(answer(cluster, snapshot))
    print("\n".join(map(printable, lines)))
