"""`tpuenv recover`: after a run that was killed, releases locks, restores states, imports what no state has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from environment import project
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.google import login
from tpuenv.terminal import dialog
from tpuenv.terraform.stacks import selected_stacks, synthesize

# The timeout of a build that deploys: cloudbuild/deploy.yaml.
STALE_AFTER = "6h"


@command(
    summary="after a crash: release locks, restore states, import what no state has",
    examples=(
        "tpuenv recover --dry-run     show what is wrong, and change nothing",
        "tpuenv recover",
        "tpuenv recover --yes         no questions, but see below",
        "tpuenv recover --yes --stale-after 0m",
    ),
    notes="""\
With --yes what is doubtful is left alone, and the exit code is 1: a lock whose holder is at work on this machine, or is
a build that Cloud Build reports as running; a lock of another machine, younger than --stale-after, whose holder cannot
be checked; a state bucket that is gone, unless --new-bucket says to create another.

Exit codes: 0 all is put right, or nothing was wrong; 1 something is left to do by hand (with --dry-run: something would
be done); 2 wrong settings or arguments; 130 interrupted.
""",
)
@options.stacks("all of them")
@options.flag("--dry-run", "show what is wrong, and change nothing")
@options.flag("--yes", "do not ask; what is doubtful is left alone")
@options.value(
    "--stale-after",
    "TIME",
    "with --yes, keep a younger lock of another machine whose holder cannot be checked: 90s, 10m, 1h; "
    f"0m keeps none (default: {STALE_AFTER}, which no build outlives)",
    type=options.seconds,
    default=STALE_AFTER,
)
@options.flag(
    "--new-bucket",
    "with --yes, create a state bucket again that is gone; Google does not restore the old one then",
)
@options.output()
def recover(
    *, stacks: tuple[str, ...], dry_run: bool, yes: bool, stale_after: float, new_bucket: bool, output: Path
) -> int:
    """After a deploy or destroy that was killed, or a lost state. In this order:

    \b
    bucket   of a state bucket that is gone, says how Google restores it, or
             creates it again
    locks    names each lock with its holder and releases it
    states   of a state that is lost or damaged, restores the last whole
             version; pushes to the bucket the errored.tfstate that Terraform
             writes into a stack's folder when it cannot write the state
    objects  lists what exists in the cloud under our names and is in no state,
             imports it, and says for everything else what to do

    It asks before each of them, and with --dry-run it changes nothing (where a stack has no state yet, Terraform itself
    writes an empty one when it reads it). It never changes or deletes anything but locks and states, and a state that
    it replaces stays in the bucket as an old version. Run it again after each deploy that it asks for: a stack cannot
    be checked before the cluster that it is in exists.
    """
    environment = project.load_for_google()
    answer = _answers(dry_run=dry_run, yes=yes)
    login.require(environment.settings.project_id)
    synthesized = synthesize(output.absolute())
    # The pipeline too: a person deploys it, and that may be killed as well.
    selected = selected_stacks(synthesized, stacks) if stacks else synthesized
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.google.clients import connect
    from tpuenv.recovery.recovery import Recovery

    return Recovery(
        environment=environment,
        clients=connect(environment.settings.project_id),
        stacks=selected,
        dialog=dialog.Dialog(answer=answer, unattended=yes),
        dry_run=dry_run,
        stale_after=stale_after,
        new_bucket=new_bucket,
    ).run()


def _answers(*, dry_run: bool, yes: bool) -> Callable[[str], bool]:
    """Who answers the questions. Raises Failed when there is nobody to be asked."""
    if dry_run:
        return _would_ask
    if yes:
        return lambda _question: True
    dialog.require_person("recover", "add --yes, or --dry-run to see what is wrong and change nothing")
    return dialog.confirmed


def _would_ask(question: str) -> bool:
    print(f"    would ask: {question}")
    return False
