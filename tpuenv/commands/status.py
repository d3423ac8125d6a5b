"""`tpuenv status`: slices, queues and jobs, now."""

from __future__ import annotations

import json as json_module
import sys

from environment import project
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.failure import INTERRUPTED
from tpuenv.jobs.runs import team_names
from tpuenv.terminal.progress import Progress


@command(
    summary="show the slices that are free, used and broken, the queues, and the jobs",
    examples=(
        "tpuenv status",
        "tpuenv status --watch                       redraw it until Ctrl-C",
        "tpuenv status --json | jq '.slices[].free'",
    ),
    notes="""\
USED slices are those whose quota jobs have, of every team. BROKEN ones lack nodes or have some that take no pods; the
line below names them. Slices that are created when a job needs them are FREE while they are not there. QUOTA, USED and
BORROWED of the queues are slices. HOSTS are those of a job that run, of all that it has. Members of teams may not read
nodes: then BROKEN is "-". docs/status.md describes the JSON; with --watch each line is one.
""",
)
@options.value("--team", "TEAM", "only the queue and the jobs of this team")
@options.flag("--watch", "show it again every few seconds, until Ctrl-C")
@options.flag("--json", "print it as JSON")
def status(*, team: str | None, watch: bool, json: bool) -> int:
    """Reads the cluster once and shows three tables: how many slices of each pool group are free, used and broken; what
    waits in each team's queue, its quota and what it has borrowed; the jobs that wait or run, with their hosts,
    restarts and age. Nothing is changed.
    """
    environment = project.load_for_google()
    teams = team_names(environment, team)
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.kubernetes.connection import connect
    from tpuenv.status.as_json import document
    from tpuenv.status.as_text import tables
    from tpuenv.status.read_status import read_status
    from tpuenv.status.watch import watch as show_again

    with Progress(out=sys.stderr) as progress:
        progress.doing("reading the cluster")
        cluster = connect(environment)
        first = None if watch else read_status(cluster, environment, teams)
    if first:
        print(json_module.dumps(document(first), indent=2) if json else "\n".join(tables(first)))
        return 0

    def lines() -> list[str]:
        now = read_status(cluster, environment, teams)
        return [json_module.dumps(document(now))] if json else list(tables(now))

    patience = cluster.patience
    try:
        show_again(lines, out=sys.stdout, seconds=patience.poll, patience=patience.change, in_place=not json)
    except KeyboardInterrupt:
        return INTERRUPTED
