"""`tpuenv logs`: what one host of a job has logged, and what it goes on to log."""

from __future__ import annotations

import sys

import click

from environment import project
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.jobs.runs import team_names
from tpuenv.terminal.progress import Progress


@command(
    summary="print the log of one host of a job",
    examples=("tpuenv logs hello-tpu-abc234 --follow", "tpuenv logs hello-tpu-abc234 --slice 1 --host 3"),
    notes="""\
Exit codes: without --follow, 0 if there is a log; with it, 0 if the job succeeded and 1 if it failed. Characters that a
terminal would obey are written as escapes.
""",
)
@click.argument("job", metavar="JOB", help="its name, as `tpuenv jobs` prints it")
@options.value("--team", "TEAM", "only look at the jobs of this team")
@options.value("--slice", "N", "the slice, from 0 (default: 0)", type=click.IntRange(min=0), default=0)
@options.value("--host", "N", "the host of the slice, from 0 (default: 0)", type=click.IntRange(min=0), default=0)
@options.value("--part", "NAME", "another part of the job than that with the TPUs, such as tensorboard, or Ray's head")
@options.flag("--follow", "wait until the job runs, and go on until it ends")
def logs(*, job: str, team: str | None, slice: int, host: int, part: str | None, follow: bool) -> int:
    """Prints the log of one host of a job. Ctrl-C ends it; the job goes on."""
    environment = project.load_for_google()
    teams = team_names(environment, team)
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.jobs.find_job import job_named
    from tpuenv.jobs.follow import following, print_log
    from tpuenv.kubernetes.connection import connect

    with Progress(out=sys.stderr, still=" so far") as progress:
        progress.doing("reading the jobs")
        cluster = connect(environment)
        found = job_named(cluster, job, teams)
        progress.doing("")
        if follow:
            return following(cluster, found, progress=progress, slice=slice, host=host, part=part or "")
        print_log(cluster, found, slice=slice, host=host, part=part or "")
    return 0
