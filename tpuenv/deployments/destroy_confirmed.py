"""Destroys the environment for a pipeline, with Terraform itself, last stack first."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from environment import Environment
from environment.names import PIPELINE
from tpuenv.failure import Failed
from tpuenv.google.clients import connect
from tpuenv.recovery import advice
from tpuenv.recovery.findings import refuse_to_leave_behind
from tpuenv.review import records
from tpuenv.review.plans import initialize
from tpuenv.state import apply_marks
from tpuenv.state.locks import hold_lock, run_info
from tpuenv.terraform.process import Terraform
from tpuenv.terraform.stacks import Stack, selected_stacks, synthesize

_FOUNDATION = "foundation"


def destroy_confirmed(
    environment: Environment, stacks: Sequence[str], *, foundation: bool, wait: float, lock_timeout: str, output: Path
) -> None:
    """Destroys the named stacks, or all of them; the foundation only with `foundation`. Protection is lifted.

    `wait` is in seconds, `lock_timeout` as Terraform reads it. Raises Failed; before anything is destroyed when
    something exists that no state has.
    """
    os.environ["DELETION_PROTECTION"] = "false"
    os.environ["DESTROY_DATA"] = "true" if foundation else "false"
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(128 + signal.SIGTERM))
    clients, names = connect(environment.settings.project_id), environment.names
    info = run_info(records.commit())
    with hold_lock(clients, names, operation="destroy", info=info, wait=wait):
        selected = _selected(synthesize(output), stacks, foundation=foundation)
        refuse_to_leave_behind(clients, names, selected)
        for stack in reversed(selected):
            # After a destroy, what an unfinished apply had left of its plan is no longer what was reviewed.
            apply_marks.end(clients, names, stack.name)
            _destroy(environment, stack, lock=f"-lock-timeout={lock_timeout}")
    print(f"\nDestroyed: {', '.join(stack.name for stack in reversed(selected))}")


def _selected(stacks: Sequence[Stack], names: Sequence[str], *, foundation: bool) -> list[Stack]:
    if PIPELINE in names:
        raise Failed(f"{PIPELINE}: a build must not destroy its own identity; a person does: `tpuenv destroy pipeline`")
    if _FOUNDATION in names and not foundation:
        raise Failed("foundation: it holds the data, and is kept; add `--foundation destroy` if that is to go as well")
    return [stack for stack in selected_stacks(stacks, names) if foundation or stack.name != _FOUNDATION]


def _destroy(environment: Environment, stack: Stack, *, lock: str) -> None:
    terraform = initialize(stack)
    managed = _managed(terraform)
    if not managed:
        # A plan would fail where the cluster is gone; refuse_to_leave_behind has checked that nothing exists.
        print(f"\n{stack.name}: nothing is there", flush=True)
        return
    print(f"\n{stack.name}: destroying {len(managed)} resources", flush=True)
    # The provider goes by the state: it empties a bucket, or deletes a cluster that was imported, only if the state
    # says so. An apply of these resources writes the lifted protection into the state.
    protected = [
        f"-target={address}"
        for address, attributes in managed.items()
        if address.startswith("google_storage_bucket.") or attributes.get("deletion_protection", False) is not False
    ]
    if protected:
        _run(environment, terraform, lock, *protected)
    _run(environment, terraform, lock, "-destroy")


def _run(environment: Environment, terraform: Terraform, *options: str) -> None:
    done = terraform.run("apply", "-auto-approve", "-input=false", "-no-color", *options, shown=True)
    if done.returncode:
        stack = terraform.stack
        raise Failed(
            f"\n{stack.name}: Terraform stopped before all of it was destroyed. Run this again: it goes on from there."
            f"{advice.after_failure(environment, [stack], done.stdout, code=done.returncode)}"
        )


def _managed(terraform: Terraform) -> Mapping[str, Mapping[str, Any]]:
    """What the stack's state holds, by address, with the attributes of the first instance of a resource."""
    text = terraform.read("state", "pull")
    resources = json.loads(text)["resources"] if text.strip() else []
    return {
        f"{resource['type']}.{resource['name']}": resource["instances"][0].get("attributes") or {}
        for resource in resources
        if resource["mode"] == "managed" and resource["instances"]
    }
