"""`tpuenv preflight`: whether the project can hold the environment, before anything is created."""

from __future__ import annotations

import json as json_module
import sys

from environment import project
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.terminal.progress import Progress


@command(
    summary="say what the project lacks for a deploy, and what fixes it",
    examples=("tpuenv preflight", "TPU_TYPE=v5p-256 tpuenv preflight", "tpuenv preflight --json"),
    notes="""\
It only reads. What Google does not answer, because an API is off or you lack a permission, is unknown, with what it
takes. docs/preflight.md says what each row means.

Exit codes: 0 nothing is missing, 1 something is, or nothing could be asked; 2 wrong settings or arguments.
""",
)
@options.flag("--json", "print JSON")
def preflight(*, json: bool) -> int:
    """Compares what the settings describe with what the Google Cloud project has: your login, billing, APIs and
    permissions, quotas of TPUs, CPUs, disks and networks, machine types in the zones, versions of GKE, reservations,
    organisation policies, and names. One table, and below each row that is not ok the command that fixes it.
    """
    environment = project.load_for_google()
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from dataclasses import replace

    from tpuenv.google.clients import connect
    from tpuenv.preflight import report, report_text

    with Progress(out=sys.stderr) as progress:
        clients = replace(connect(environment.settings.project_id), say=progress.line)
        progress.doing("asking Google")
        sections = report.report(
            environment,
            clients,
            progress=lambda done, all_: progress.doing("asking Google", f"{done} of {all_} answers"),
        )
    if json:
        print(json_module.dumps(report.as_json(environment, sections), indent=2))
    else:
        output = Progress()
        for line, tone in report_text.lines(sections):
            output.line(line, tone)
    return report.exit_code(sections)
