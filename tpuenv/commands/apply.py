"""`tpuenv apply`: deploys what was reviewed and nothing else, stack by stack."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from environment import project
from environment.names import PIPELINE
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.failure import Failed, WrongArgument
from tpuenv.recovery import advice
from tpuenv.review import records
from tpuenv.terraform.stacks import selected_stacks, synthesize


@command(
    summary="deploy what was reviewed, and nothing else",
    examples=(
        "tpuenv apply --reviewed gs://BUCKET --ask TRIGGER",
        "tpuenv plan --record plans && less plans/*/*.json",
        "tpuenv apply --reviewed plans",
    ),
    notes="Exit codes: 0 all is applied, or approval was asked for; 1 it could not be done, or differs from what was "
    "reviewed; 2 wrong settings or arguments; 3 approval is needed and no trigger was given to ask for it; 130 "
    "interrupted; 143 terminated with SIGTERM.",
)
@options.stacks(f"all but {PIPELINE}")
@options.value(
    "--reviewed", "RECORDS", "gs://BUCKET or the local folder that `tpuenv plan --record` wrote to", required=True
)
@options.value("--ask", "TRIGGER", "the Cloud Build trigger whose next build is to be approved")
@options.locks
@options.output()
def apply(
    *, stacks: tuple[str, ...], reviewed: str, ask: str | None, wait: float, lock_timeout: str, output: Path
) -> int:
    """Plans each stack, in their order, compares the plan with the record that `tpuenv plan --record` wrote of the same
    content, and applies that very plan if it does nothing that was not reviewed. Otherwise it stops, or asks for an
    approval: docs/pipeline.md says when. A stack without changes is left alone. The stacks pipeline and tpu-vms
    are left out: a person deploys them.

    Only one apply or destroy of an environment runs at a time; another waits for it. After an apply that was stopped
    half-way, the next one applies what is left of the plan on record; anything else is shown and asked for.
    """
    environment = project.load_for_google()
    if PIPELINE in stacks:
        raise Failed(
            f"{PIPELINE}: a build must not change its own identity; a person runs `tpuenv deploy foundation {PIPELINE}`"
        )
    if not reviewed.startswith("gs://") and not Path(reviewed).is_dir():
        raise WrongArgument(
            f"--reviewed: '{reviewed}' is no folder here, so nothing in it was reviewed; name gs://BUCKET, or the "
            "folder that `tpuenv plan --record` wrote to"
        )
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.deployments.apply_reviewed import ReviewedApply
    from tpuenv.google.clients import connect
    from tpuenv.state.locks import Locked, hold_lock, run_info

    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(128 + signal.SIGTERM))
    clients = connect(environment.settings.project_id)
    store = records.store(reviewed, environment)
    synthesized = synthesize(output.absolute())
    commit = records.commit()
    work = ReviewedApply(
        environment=environment,
        clients=clients,
        store=store,
        stacks=selected_stacks(synthesized, stacks),
        key=records.digest(synthesized),
        commit=commit,
        trigger=ask,
        lock_timeout=lock_timeout,
    )
    try:
        with hold_lock(clients, environment.names, operation="apply", info=run_info(commit), wait=wait):
            return work.run()
    except Locked as locked:
        raise Failed(f"{locked}\n\n{advice.for_recover(environment, work.stacks)}") from locked
