"""`tpuenv jobs`: the jobs of the teams, how far each is, and why it waits."""

from __future__ import annotations

import sys
from datetime import datetime, timezone

from environment import project
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.jobs.runs import team_names
from tpuenv.terminal.progress import Progress
from vocabulary.printable import printable


@command(
    summary="list the jobs: state, place in the queue, slices, and why one waits",
    examples=("tpuenv jobs", "tpuenv jobs --team research"),
    notes="""\
States: waiting (for quota, or for Google to find machines), admitted (it has its slices, and no pods yet), starting
(not every host runs), running, succeeded, failed, suspended (Kueue has given it up). QUEUE is the place in the team's
queue: a job of a higher priority goes before it. Below a job is what keeps it from running.
""",
)
@options.value("--team", "TEAM", "only look at the jobs of this team")
def jobs(*, team: str | None) -> None:
    """Lists the jobs of every team that you may see, or of one: JobSets, Jobs, RayJobs and RayClusters, those that have
    ended included until they are deleted.
    """
    environment = project.load_for_google()
    teams = team_names(environment, team)
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.jobs.read_jobs import read_teams
    from tpuenv.jobs.table import table
    from tpuenv.kubernetes.connection import connect

    with Progress(out=sys.stderr) as progress:
        progress.doing("reading the jobs")
        known, refused = read_teams(connect(environment), teams)
    if known:
        print("\n".join(table(known, datetime.now(timezone.utc))))
    else:
        print("There are no jobs.")
    for name, error in refused.items():
        print(printable(f"note: the jobs of team {name} may not be read: {error.said}"), file=sys.stderr)
