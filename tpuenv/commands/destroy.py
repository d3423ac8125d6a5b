"""`tpuenv destroy`: `cdktf destroy '*'` for a person at a terminal, or for a pipeline what a typed word confirms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

import click

from environment import Environment, project
from tpuenv.commands import options
from tpuenv.commands.command import CDKTF_OPTIONS, CdktfCommand, command
from tpuenv.deployments import cdktf_explained
from tpuenv.failure import Failed, WrongArgument
from tpuenv.google import login
from tpuenv.terraform import cdktf
from tpuenv.terraform.stacks import refuse_unknown, synthesize, unmatched
from vocabulary.printable import quoted

# The options of `cdktf destroy` 0.21 that take the next word as a value; after any other, that word may be a stack.
_WITH_A_VALUE = frozenset(
    {"-o", "--output", "-a", "--app", "--var", "--var-file", "--parallelism", "--terraform-parallelism"}
)
_PATTERN = re.compile(r"[][*?{}()!+@]")  # what micromatch, which cdktf selects stacks with, gives a meaning to


@command(
    cls=CdktfCommand,
    summary="cdktf destroy '*', and an explanation if it fails",
    examples=(
        "DELETION_PROTECTION=false tpuenv destroy observability queues",
        "DELETION_PROTECTION=false DESTROY_DATA=true tpuenv destroy",
        "tpuenv destroy --confirm tpu",
    ),
    notes=CDKTF_OPTIONS,
)
@options.stacks("all of them")
@options.auto_approve
@options.value("--confirm", "TEXT", "for pipelines: RESOURCE_PREFIX, typed by a person")
@click.option(
    "--foundation",
    type=click.Choice(["keep", "destroy"]),
    default="keep",
    help="with --confirm: what becomes of the network, the buckets, the images, the experiments (default: keep)",
)
@options.locks
@options.output(" with --confirm")
def destroy(
    *,
    stacks: tuple[str, ...],
    auto_approve: bool,
    confirm: str | None,
    foundation: str,
    wait: float,
    lock_timeout: str,
    output: Path,
    cdktf_options: list[str],
) -> int:
    """Checks what exists in the cloud and is in no state, as after a state was lost, and refuses if there is any: it
    would be left, and cost money. Then runs `cdktf destroy` on all stacks, or on those that are named: the plan, the
    question and the output are cdktf's own. Everything is protected until DELETION_PROTECTION=false, and the data in
    foundation until DESTROY_DATA=true as well; Terraform refuses before it touches a protected stack.

    With --confirm it is for pipelines, and asks nothing. TEXT must be RESOURCE_PREFIX, typed by a person; that lifts
    DELETION_PROTECTION for this run. Queues are drained, then all stacks are destroyed but foundation and pipeline;
    foundation is destroyed as well, with all its data, only with --foundation destroy. It holds the environment's lock.
    """
    environment = project.load_for_google()
    if confirm is None:
        cdktf_explained.require_approval("destroy", auto_approve=auto_approve)
        _refuse_to_leave_objects(environment, stacks, cdktf_options)
        return cdktf_explained.run(environment, "destroy", stacks, cdktf_options, auto_approve=auto_approve)
    prefix = environment.settings.resource_prefix
    if confirm != prefix:
        raise Failed(
            f"--confirm: {quoted(confirm)} is not the RESOURCE_PREFIX of this environment; nothing was touched. Type "
            f"'{prefix}' to destroy it"
        )
    if cdktf_options:
        raise Failed(f"{quoted(cdktf_options[0])}: with --confirm nothing goes to cdktf; leave out what follows --")
    from tpuenv.deployments.destroy_confirmed import destroy_confirmed

    destroy_confirmed(
        environment,
        stacks,
        foundation=foundation == "destroy",
        wait=wait,
        lock_timeout=lock_timeout,
        output=output.absolute(),
    )
    return 0


def _refuse_to_leave_objects(environment: Environment, words: Sequence[str], cdktf_options: Sequence[str]) -> None:
    """Raises Failed when cdktf would leave objects in the cloud that no state has."""
    for word in words:
        if not re.fullmatch(r"[a-z*?-]+", word):
            raise WrongArgument(
                f"{quoted(word)}: name stacks, or use * and ?; it has to be known what this would leave behind"
            )
    # cdktf takes patterns as well: https://developer.hashicorp.com/terraform/cdktf/cli-reference/commands#destroy
    for before, word in pairwise(["", *cdktf_options]):
        if _PATTERN.search(word) and before not in _WITH_A_VALUE:
            raise WrongArgument(_late(word))
    from tpuenv.google.clients import connect
    from tpuenv.recovery.findings import refuse_to_leave_behind
    from tpuenv.state import apply_marks

    output = cdktf.output_folder(cdktf_options)
    login.require(environment.settings.project_id)
    stacks = synthesize(output)
    if late := [word for word in cdktf_options if any(fnmatchcase(stack.name, word) for stack in stacks)]:
        raise WrongArgument(_late(late[0]))
    selected = [stack for stack in stacks if any(fnmatchcase(stack.name, word) for word in words or ["*"])]
    refuse_unknown(stacks, unmatched(stacks, words))
    clients = connect(environment.settings.project_id)
    refuse_to_leave_behind(clients, environment.names, selected)
    for stack in selected:
        # After a destroy, what an unfinished apply had left of its plan is no longer what was reviewed.
        apply_marks.end(clients, environment.names, stack.name)


def _late(word: str) -> str:
    return f"{quoted(word)}: name it before the --, else all the others would be destroyed with it"
