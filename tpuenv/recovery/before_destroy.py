"""Looks, before a destroy, for what it would leave behind: objects in the cloud that the stacks' states do not know."""

from __future__ import annotations

from collections.abc import Sequence

from environment.names import Names
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from tpuenv.recovery.objects import Objects, in_no_state
from tpuenv.review.plans import initialize
from tpuenv.state import versions
from tpuenv.state.versions import Version
from tpuenv.terminal.dialog import Dialog
from tpuenv.terraform.stacks import Stack


def refuse(clients: Clients, names: Names, stacks: Sequence[Stack]) -> None:
    """Raises Failed, naming it, when something exists of which Terraform would say that there is nothing to destroy.

    Looked at are the stacks whose state is gone, damaged, without anything in the cloud, or begun anew.
    """
    lines = [line for stack in stacks for line in _left(clients, names, stack)]
    if lines:
        told = "\n".join(f"  {line}" for line in lines)
        raise Failed(
            "destroy: nothing was destroyed, because what the states do not know would be left, and go on costing "
            f"money:\n{told}\n`tpuenv recover` puts that right; then destroy again. Where it cannot, "
            "`cdktf destroy` does not look."
        )


def _left(clients: Clients, names: Names, stack: Stack) -> list[str]:
    found = versions.read_versions(clients, names, stack.name)
    live = versions.live_version(found)
    if live is not None and live.state is None:
        return [f"{stack.name}: its state is damaged: {live.problem}"]
    if (
        live is not None
        and live.state is not None
        and live.state.owned
        and versions.of_other_lineage(found, live) is None
    ):
        return []  # Terraform destroys what it owns
    print(f"{stack.name}: its state does not say what exists; looking for it", flush=True)
    dialog = Dialog(answer=lambda _question: False, careful=True)
    try:
        looked, missing = Objects(clients=clients, terraform=initialize(stack), dialog=dialog).seen()
    except Failed as failure:
        return _doubtful(found, live, [f"{stack.name}: it cannot be told what exists: {failure}"])
    if missing:
        # What is in a cluster that is not there, or of a kind that it does not know, is not there either.
        return []
    return [*in_no_state(looked), *_doubtful(found, live, list(looked.unclear.values()))]


def _doubtful(found: Sequence[Version], live: Version | None, lines: list[str]) -> list[str]:
    """What cannot be told stands in the way, unless the state says that Terraform destroyed all of it before."""
    if live is None or versions.last_whole(found) is not live or not _emptied(found):
        return lines
    for line in lines:
        print(f"  {line}", flush=True)
    return []


def _emptied(found: Sequence[Version]) -> bool:
    """Whether the newest state owns nothing because Terraform destroyed what it owned."""
    lineages = [(version.state.lineage, version.state.owned) for version in found if version.state is not None]
    return any(owned for lineage, owned in lineages if lineage == lineages[0][0])
