"""`tpuenv destroy --confirm`: destroys the environment for a pipeline, with Terraform itself, last stack first."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from environment import Environment, project
from tpuenv.failure import Failed
from tpuenv.google.clients import connect
from tpuenv.recovery import advice, before_destroy
from tpuenv.review import records
from tpuenv.review.plans import initialize
from tpuenv.state import apply_marks
from tpuenv.state.locks import hold_lock, run_info
from tpuenv.terraform.process import Terraform
from tpuenv.terraform.stacks import PIPELINE, Stack, selected_stacks, synthesize

_FOUNDATION = "foundation"


def run(args: argparse.Namespace) -> int:
    """0 when all of it is gone. Raises Failed; before anything is touched when the confirmation is wrong, or when
    something exists that no state knows of.
    """
    wanted = project.real()
    prefix = wanted.settings.resource_prefix
    if args.confirm != prefix:
        raise Failed(
            f"--confirm: '{args.confirm}' is not the RESOURCE_PREFIX of this environment; nothing was touched. Type "
            f"'{prefix}' to destroy it"
        )
    if args.further:
        raise Failed(f"'{args.further[0]}': with --confirm nothing goes to cdktf; leave out what follows --")
    # What was typed says that this is meant; a setting in vars.env is there to ask for it.
    os.environ["DELETION_PROTECTION"] = "false"
    os.environ["DESTROY_DATA"] = "true" if args.foundation == "destroy" else "false"
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(128 + signal.SIGTERM))
    clients = connect(wanted.settings.project_id)
    info = run_info(records.commit())
    with hold_lock(clients, wanted.names, operation="destroy", info=info, wait=args.wait):
        stacks = _wanted(synthesize(args.output.absolute()), args.stacks, foundation=args.foundation == "destroy")
        before_destroy.refuse(clients, wanted.names, stacks)
        for stack in reversed(stacks):
            # To make again what goes now is not what was left of a plan.
            apply_marks.end(clients, wanted.names, stack.name)
            _destroy(wanted, stack, lock=f"-lock-timeout={args.lock_timeout}")
    print(f"\nDestroyed: {', '.join(stack.name for stack in reversed(stacks))}")
    return 0


def _wanted(stacks: Sequence[Stack], names: Sequence[str], *, foundation: bool) -> list[Stack]:
    if PIPELINE in names:
        raise Failed(f"{PIPELINE}: a build must not destroy its own identity; a person does: `tpuenv destroy pipeline`")
    if _FOUNDATION in names and not foundation:
        raise Failed("foundation: it holds the data, and is kept; add `--foundation destroy` if that is to go as well")
    return [stack for stack in selected_stacks(stacks, names) if foundation or stack.name != _FOUNDATION]


def _destroy(environment: Environment, stack: Stack, *, lock: str) -> None:
    terraform = initialize(stack)
    managed = _managed(terraform)
    if not managed:
        # Some stacks could not even be read: they ask for a cluster that is gone. It was looked for what exists.
        print(f"\n{stack.name}: nothing is there", flush=True)
        return
    print(f"\n{stack.name}: destroying {len(managed)} resources", flush=True)
    # The provider goes by the state: it empties a bucket, or deletes a cluster that was imported, only if that says so.
    first = [
        f"-target={address}"
        for address, attributes in managed.items()
        if address.startswith("google_storage_bucket.") or attributes.get("deletion_protection", False) is not False
    ]
    if first:
        _run(environment, terraform, lock, *first)
    _run(environment, terraform, lock, "-destroy")


def _run(environment: Environment, terraform: Terraform, *options: str) -> None:
    done = terraform.run("apply", "-auto-approve", "-input=false", "-no-color", *options, shown=True)
    if done.returncode:
        stack = terraform.stack
        raise Failed(
            f"\n{stack.name}: Terraform stopped before all of it was destroyed. Run this again: it goes on from there."
            f"{advice.told(environment, [stack], done.stdout, code=done.returncode)}"
        )


def _managed(terraform: Terraform) -> Mapping[str, Mapping[str, Any]]:
    """What the stack's state holds, by address, with the attributes of one instance of each."""
    text = terraform.read("state", "pull")
    resources = json.loads(text)["resources"] if text.strip() else []
    return {
        f"{each['type']}.{each['name']}": each["instances"][0].get("attributes") or {}
        for each in resources
        if each["mode"] == "managed" and each["instances"]
    }
