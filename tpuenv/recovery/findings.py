"""What `tpuenv recover` would do about some stacks. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from environment.names import Names
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from tpuenv.recovery.search import search
from tpuenv.review.plans import initialize
from tpuenv.state import versions
from tpuenv.state.bucket import state_objects
from tpuenv.state.locks import read_locks
from tpuenv.state.versions import Version
from tpuenv.terraform.process import Terraform
from tpuenv.terraform.stacks import Stack


def findings(clients: Clients, names: Names, stacks: Sequence[Stack]) -> list[str]:
    """Locks of others, damaged states and what is in no state, a line each, after Terraform failed in these stacks.

    Raises Failed.
    """
    if not state_objects(clients, names).bucket_exists():
        return [f"The state bucket gs://{names.state_bucket} is gone: do not create a new one, restore it if you can."]
    stack_names = {stack.name for stack in stacks}
    lines = [
        f"Locked: {lock}"
        for lock in read_locks(clients, names)
        if lock.stack in stack_names or not (lock.stack or lock.by_this_user)
    ]
    for stack in stacks:
        live = versions.live_version(versions.read_versions(clients, names, stack.name))
        if live is not None and live.state is None:
            lines.append(_damaged(stack, live))
            continue
        # Terraform has just worked in the folder, unless it failed before that.
        is_initialized = (stack.folder / ".terraform").exists()
        try:
            result = search(Terraform(stack=stack) if is_initialized else initialize(stack), clients)
        except Failed as failure:
            lines.append(f"{stack.name}: what is in no state is not known: {failure}")
            continue
        lines += [f"{stack.name} cannot be searched until {result.missing}."] if result.missing else []
        lines += [*result.lines, *result.undecided.values()]
    return lines


def refuse_to_leave_behind(clients: Clients, names: Names, stacks: Sequence[Stack]) -> None:
    """Raises Failed, naming them, when objects exist that a destroy would leave, because no state has them.

    Searched are the stacks whose state is gone, damaged, new, or owns nothing in the cloud.
    """
    lines = [f"\n  {line}" for stack in stacks for line in _left_behind(clients, names, stack)]
    if lines:
        raise Failed(
            "destroy: nothing was destroyed, because it would leave what the states do not have, which goes on costing "
            f"money:{''.join(lines)}\n`tpuenv recover` corrects that; then destroy again. Where it cannot, use `cdktf "
            "destroy`, which does not check."
        )


def _left_behind(clients: Clients, names: Names, stack: Stack) -> list[str]:
    kept = versions.read_versions(clients, names, stack.name)
    live = versions.live_version(kept)
    if live is not None and live.state is None:
        return [_damaged(stack, live)]
    if live is not None and live.state and live.state.owned and not versions.of_other_lineage(kept, live):
        return []  # Terraform destroys what the state owns.
    print(f"{stack.name}: its state does not say what exists; searching for it", flush=True)
    try:
        result = search(initialize(stack), clients)
        objects, undecided = result.lines, list(result.undecided.values())
    except Failed as failure:
        objects, undecided = [], [f"{stack.name}: what exists is not known: {failure}"]
    else:
        if result.missing:
            # What is in a cluster that does not exist, or of a kind that it does not know, does not exist either.
            return []
    if live is None or versions.last_whole(kept) is not live or not _was_emptied(kept):
        return [*objects, *undecided]
    # Terraform destroyed all that the state owned: what is undecided is no reason to refuse.
    for line in undecided:
        print(f"  {line}", flush=True)
    return objects


def _was_emptied(kept: Sequence[Version]) -> bool:
    """Whether an older version of the newest state's lineage owned something."""
    states = [version.state for version in kept if version.state is not None]
    return any(state.owned for state in states if state.lineage == states[0].lineage)


def _damaged(stack: Stack, version: Version) -> str:
    return f"{stack.name}: its state is damaged: {version.problem}"
