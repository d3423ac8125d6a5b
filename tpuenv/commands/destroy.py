"""`tpuenv destroy`: `cdktf destroy '*'` for a person at a terminal, or for a pipeline what a typed word confirms."""

from __future__ import annotations

import argparse
import re
from fnmatch import fnmatchcase
from pathlib import Path

from environment import Environment
from tpuenv.commands import cdktf
from tpuenv.commands.options import add_waiting
from tpuenv.failure import WrongArgument
from tpuenv.google import login
from tpuenv.terraform.stacks import OUTPUT, refuse_unknown, synthesize

_DESCRIPTION = """\
Looks for what exists in the cloud and is in no state, as after a state was lost, and
refuses if there is any: it would be left, and cost money. Then runs `cdktf destroy` on
all stacks, or on those that are named: the plan, the question and the output are cdktf's
own. Everything is protected until DELETION_PROTECTION=false, and the data in foundation
until DESTROY_DATA=true as well; Terraform refuses before it touches a protected stack.

With --confirm it is for pipelines, and asks nothing. TEXT must be RESOURCE_PREFIX,
typed by a person; that lifts DELETION_PROTECTION for this run. Queues are drained, then
all stacks are destroyed but foundation and pipeline; foundation goes as well, with all
its data, only with --foundation destroy. It holds the environment's lock.
"""

_EXAMPLES = """\
  DELETION_PROTECTION=false tpuenv destroy queues tpu-node-pools platform cluster
  DELETION_PROTECTION=false DESTROY_DATA=true tpuenv destroy
  tpuenv destroy --confirm tpu
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = cdktf.add_parser(subparsers, "destroy", description=_DESCRIPTION, examples=_EXAMPLES)
    confirmed = parser.add_argument_group("for pipelines")
    confirmed.add_argument("--confirm", metavar="TEXT", help="RESOURCE_PREFIX, typed by a person")
    confirmed.add_argument(
        "--foundation",
        choices=("keep", "destroy"),
        default="keep",
        help="what becomes of the network, the buckets, the images, the experiments (default: keep)",
    )
    add_waiting(confirmed)
    confirmed.add_argument(
        "--output", type=Path, default=OUTPUT, help="where to synthesize with --confirm (default: cdktf.out)"
    )


def run(args: argparse.Namespace) -> int:
    """Without --confirm it is cdktf's exit code."""
    if args.confirm is None:
        return cdktf.run(args, first=lambda wanted: _look(wanted, args))
    from tpuenv.commands import destroy_confirmed

    return destroy_confirmed.run(args)


def _look(wanted: Environment, args: argparse.Namespace) -> None:
    """Raises Failed when cdktf would leave something behind."""
    for word in args.stacks:
        if not re.fullmatch(r"[a-z*?-]+", word):
            raise WrongArgument(
                f"'{word}': name stacks, or use * and ?; it has to be known what this would leave behind"
            )
    from tpuenv.google.clients import connect
    from tpuenv.recovery import before_destroy
    from tpuenv.state import apply_marks

    output = cdktf.output_of(args.further)
    login.require(wanted.settings.project_id)
    stacks = synthesize(output)
    # cdktf takes patterns as well: https://developer.hashicorp.com/terraform/cdktf/cli-reference/commands#destroy
    if words := [word for word in args.further if any(fnmatchcase(stack.name, word) for stack in stacks)]:
        raise WrongArgument(f"'{words[0]}': name it before the --, else all the others would be destroyed with it")
    meant = [stack for stack in stacks if any(fnmatchcase(stack.name, each) for each in args.stacks or ["*"])]
    refuse_unknown(stacks, [] if meant else args.stacks)
    clients = connect(wanted.settings.project_id)
    before_destroy.refuse(clients, wanted.names, meant)
    for stack in meant:
        # To make again what goes now is not what was left of a plan.
        apply_marks.end(clients, wanted.names, stack.name)
