"""What commands do that take the names of jobs: one job after the other, and one that fails keeps no other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from environment import project
from tpuenv.failure import Failed
from tpuenv.jobs.runs import team_names
from tpuenv.terminal.progress import Progress

if TYPE_CHECKING:
    from tpuenv.jobs.job import Job
    from tpuenv.kubernetes.client import Cluster


def each_job(names: tuple[str, ...], team: str | None, doing: str, change: Callable[[Cluster, Job], str]) -> None:
    """Prints what `change` returns of each. Raises Failed of all that failed together, with the first one's code."""
    environment = project.load_for_google()
    teams = team_names(environment, team)
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.jobs.find_job import job_among
    from tpuenv.jobs.read_jobs import read_teams
    from tpuenv.kubernetes.connection import connect

    with Progress(out=sys.stderr) as progress:
        progress.doing("reading the jobs")
        cluster = connect(environment)
        read, refused = read_teams(cluster, teams)
        failures: list[Failed] = []
        for name in dict.fromkeys(names):
            try:
                job = job_among(read, refused, name, teams)
                progress.doing(f"{doing} {job}")
                said = change(cluster, job)
            except Failed as failure:
                failures.append(failure)
                continue
            progress.doing("")
            print(said, flush=True)
    if failures:
        together = Failed("\n".join(map(str, failures)))
        together.exit_code = failures[0].exit_code
        raise together
