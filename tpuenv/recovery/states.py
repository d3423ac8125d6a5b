"""Mends one stack's state: lost, damaged, or never written because the bucket could not be reached."""

from __future__ import annotations

from collections.abc import Sequence

from environment.names import Names
from tpuenv.google.clients import Clients
from tpuenv.state import versions
from tpuenv.state.versions import State, Version
from tpuenv.terminal.dialog import Dialog
from tpuenv.terraform.stacks import Stack

# What Terraform leaves in a stack's folder when it cannot write the state.
ERRORED = "errored.tfstate"


def mend(clients: Clients, names: Names, stack: Stack, dialog: Dialog, *, locked: bool) -> bool:
    """Whether the stack's state can be worked with: it is whole now, or there is none and never was. Raises Failed."""
    found = versions.read_versions(clients, names, stack.name)
    live = versions.live_version(found)
    lost = live is None or live.state is None or versions.last_whole(found) is not live
    dialog.say(f"  {stack.name}: {_told(found, live, lost=lost)}")
    if locked:
        return live is None or live.state is not None
    good = versions.last_whole([version for version in found if version is not live])
    before = found[found.index(good) :] if good is not None else ()
    if _brought_in(clients, names, stack, dialog, before if lost else found) or not lost:
        return True
    if good is not None:
        if dialog.ask(f"Put back the last whole version, {good}?"):
            serial = versions.replace(clients, names, stack.name, good.content, another_lineage=True)
            dialog.say(f"    restored, as serial {serial}")
            return True
        dialog.leave(f"{stack.name}: its state is lost; `tpuenv state restore {stack.name} {good.generation}`")
        return False
    if live is None or live.state is not None:
        return True
    if dialog.ask("No whole version of it is kept. Move it away, to begin anew with what exists?"):
        versions.remove(clients, names, stack.name, live)
        dialog.say("    moved away; it stays in the bucket as an old version")
        return True
    dialog.leave(f"{stack.name}: its state is damaged, and no whole version is kept")
    return False


def damaged(clients: Clients, names: Names, stack: Stack) -> str:
    """That the stack's present state is of no use to Terraform, in a line; "" when it is. Raises Failed."""
    live = versions.live_version(versions.read_versions(clients, names, stack.name))
    return f"{stack.name}: its state is damaged: {live.problem}" if live is not None and live.state is None else ""


def _told(found: Sequence[Version], live: Version | None, *, lost: bool) -> str:
    if live is None:
        return "its state is gone" if found else "no state yet"
    if live.state is None:
        return f"its state is damaged: {live.problem}"
    if lost:
        owning = f"only {', '.join(live.state.addresses)}" if live.state.addresses else "nothing"
        return f"its state is gone; there is one begun anew, which holds {owning}"
    kept = versions.of_other_lineage(found, live)
    more = f"; of another lineage, from before it was begun anew, version {kept} is kept" if kept else ""
    return f"serial {live.state.serial}, {len(live.state.addresses)} resources{more}"


def _brought_in(clients: Clients, names: Names, stack: Stack, dialog: Dialog, found: Sequence[Version]) -> bool:
    """Whether the bucket now holds what Terraform had to leave in the stack's folder."""
    path = stack.folder / ERRORED
    if not path.is_file():
        return False
    content = path.read_bytes()
    try:
        left = versions.parse(content)
    except ValueError as error:
        dialog.say(f"    {path} is no state ({error}); left alone")
        return False
    dialog.say(f"    Terraform left {path}: serial {left.serial}, {len(left.addresses)} resources")
    if not _newer(left, found):
        dialog.say("    the bucket has had a newer state, or one of another lineage; left alone")
        return False
    if not dialog.ask("Bring it in?"):
        dialog.leave(f"{stack.name}: {path} is not in the bucket")
        return False
    serial = versions.replace(clients, names, stack.name, content, another_lineage=True)
    path.rename(path.with_name(f"{ERRORED}.brought-in"))
    dialog.say(f"    brought in, as serial {serial}")
    return True


def _newer(left: State, found: Sequence[Version]) -> bool:
    known = [version.state for version in found if version.state is not None]
    return all(state.lineage == left.lineage and state.serial < left.serial for state in known)
