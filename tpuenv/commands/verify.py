"""`tpuenv verify`: whether what was deployed works, for each team on each pool group."""

from __future__ import annotations

import json as json_module
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from environment import Environment, project
from manifests.recipes import Recipe
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.terminal.dialog import confirmed, has_person
from tpuenv.terminal.progress import Progress

if TYPE_CHECKING:
    from tpuenv.verification.rows import Row


@command(
    summary="run hello-tpu for every team on every pool group, and say what works",
    examples=(
        "tpuenv verify                              after a deploy",
        "tpuenv verify --team research --group dev  one team on one pool group",
        "tpuenv verify --json | jq .verdict",
    ),
    notes="""\
It takes one free slice of each pool group at a time: where none is free, the row says busy. Only a job that borrows the
slice at the moment when a run is created can be stopped for it. It asks before it uses groups whose slices Google
creates, and charges, for the run (flex-start, queued, autoscaled), and leaves them out where there is no terminal to
ask at, or with --json, unless --auto-approve is given. Ctrl-C deletes what it has created. docs/verify.md describes the
rows and the JSON.

Exit codes: 0 all is verified, 1 something failed, 2 wrong settings or arguments, 3 nothing failed and not all is
verified (waiting, busy, simulated, left out), 130 interrupted.
""",
)
@options.value("--team", "TEAM", "only this team (default: all)")
@options.value("--group", "GROUP", "only this pool group (default: all)")
@options.value("--timeout", "TIME", "how long a run may take (default: 15m)", type=options.timeout, default="15m")
@options.flag("--json", "print JSON")
@options.flag("--auto-approve", "do not ask before slices are created and paid")
def verify(*, team: str | None, group: str | None, timeout: str, json: bool, auto_approve: bool) -> int:
    """Runs the recipe hello-tpu on one slice for each team and each pool group that it may use, as the team's own
    service account, and compares: the hosts and chips that the program sees, sums and products, the bandwidth between
    the chips, and that the team's bucket can be used, and neither buckets nor Services of others. All that it creates
    is deleted at the end. Of each team it also asks the API server for what must be refused: docs/verify.md has the
    list.
    """
    environment = project.load_for_google()
    from tpuenv.verification import plan

    runs, rows = plan.possible(plan.planned(environment, team=team, group=group))
    if runs:
        _require_login(environment)
        print("\n".join(plan.announcement(environment, runs, timeout)), file=sys.stderr, flush=True)
    charged = plan.charged_slices(runs)
    if charged and not auto_approve:
        asked = not json and has_person()
        if not (asked and confirmed(f"Create {charged}, and pay for what is created?")):
            runs, left_out = plan.without_charged(runs)
            rows += left_out
    if runs:
        # Not before the settings are known to be good: Google's libraries take a second to load.
        from tpuenv.kubernetes.connection import connect
        from tpuenv.verification import boundary
        from tpuenv.verification.verify import verify as verify_runs

        # Of a pipeline that gives up, and of a terminal that is closed: what was created is deleted as after Ctrl-C.
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.default_int_handler)
        with Progress(out=sys.stderr) as progress:
            progress.doing("looking up the image")
            runs = plan.with_images(runs, _images(environment, runs[0].recipe, progress))
            progress.doing("")
            cluster = replace(connect(environment), say=progress.line)
            runs = boundary.with_other_services(cluster, runs)
            rows += verify_runs(cluster, runs, seconds=options.seconds(timeout), timeout=timeout, progress=progress)
            progress.doing("trying what the teams must not do")
            rows += boundary.rows(cluster, runs)
    return _print(rows, as_json=json)


def _require_login(environment: Environment) -> None:
    """Raises Failed where there is no login for Google, and the cluster is reached with one."""
    from tpuenv.google import login
    from tpuenv.kubernetes.connection import reached_without_google

    if not reached_without_google():
        login.require(environment.settings.project_id)


def _images(environment: Environment, recipe: Recipe, progress: Progress) -> dict[str, str]:
    """The image by its digest; none, so that it is named by its tag, of a cluster that is reached without Google."""
    from tpuenv.google import login
    from tpuenv.google.clients import connect_without_quota_project
    from tpuenv.jobs.images import pinned_images
    from tpuenv.kubernetes.connection import reached_without_google

    if reached_without_google() and not login.is_on_this_machine():
        progress.line("note: there is no login for Google, so the image is named by its tag")
        return {}
    return pinned_images(environment, connect_without_quota_project(environment.settings.project_id), recipe)


def _print(rows: list[Row], *, as_json: bool) -> int:
    from tpuenv.verification import report
    from tpuenv.verification.rows import exit_code

    ordered = sorted(rows, key=lambda item: (item.team, not item.group, item.group))
    if as_json:
        print(json_module.dumps(report.document(ordered), indent=2))
    else:
        output = Progress()
        for line, tone in report.lines(ordered):
            output.line(line, tone)
    return exit_code(ordered)
