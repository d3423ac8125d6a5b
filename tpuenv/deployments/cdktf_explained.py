"""`cdktf deploy` and `destroy` for a person, with an explanation of the errors that Terraform printed."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from environment import Environment
from tpuenv.google import login
from tpuenv.recovery import advice
from tpuenv.terminal import dialog
from tpuenv.terraform import cdktf
from tpuenv.terraform.stacks import refuse_unknown, synthesized_stacks, unmatched


def require_approval(verb: str, *, auto_approve: bool) -> None:
    """Raises Failed where cdktf could not ask for the approval of its plan."""
    if not auto_approve:
        dialog.require_person(verb, "add --auto-approve if you know what it does")


def run(
    environment: Environment, verb: str, stacks: Sequence[str], options: Sequence[str], *, auto_approve: bool
) -> int:
    """Runs `cdktf VERB` with these options on the stacks, or on all; its exit code, as of tpuenv.terraform.cdktf.run.

    Raises Failed, and WrongArgument where cdktf refused a name that no stack has.
    """
    login.require(environment.settings.project_id)
    code, output = cdktf.run(verb, *(stacks or ["*"]), *options, *(["--auto-approve"] if auto_approve else []))
    synthesized = synthesized_stacks(cdktf.output_folder(options))
    if code:
        refuse_unknown(synthesized, unmatched(synthesized, stacks))
        by_name = {stack.name: stack for stack in synthesized}
        stopped = [by_name[name] for name in cdktf.failed_stacks(output, by_name)]
        if steps := advice.after_failure(environment, stopped, output):
            print(f"\n{steps.strip()}", file=sys.stderr)
    elif verb == "deploy" and synthesized:
        for line in advice.removed_stacks(environment, synthesized):
            print(f"\n{line}", file=sys.stderr)
    return code
