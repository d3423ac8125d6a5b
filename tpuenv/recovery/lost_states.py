"""Repairs one stack's state: lost, damaged, or never written because the bucket could not be reached."""

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


def repair_state(clients: Clients, names: Names, stack: Stack, dialog: Dialog, *, locked: bool) -> bool:
    """Whether Terraform can work with the stack's state: it is whole now, or there never was one. Raises Failed."""
    kept = versions.read_versions(clients, names, stack.name)
    live = versions.live_version(kept)
    lost = live is None or live.state is None or versions.last_whole(kept) is not live
    dialog.say(f"  {stack.name}: {_condition(kept, live, lost=lost)}")
    if locked:
        return live is None or live.state is not None
    whole = versions.last_whole([version for version in kept if version is not live])
    before = kept[kept.index(whole) :] if whole is not None else ()
    if _write_errored_state(clients, names, stack, dialog, before if lost else kept) or not lost:
        return True
    if whole is not None:
        if dialog.ask(f"Restore the last whole version, {whole}?"):
            serial = versions.replace(clients, names, stack.name, whole.content, another_lineage=True)
            dialog.say(f"    restored, as serial {serial}")
            return True
        dialog.leave(f"{stack.name}: its state is lost; `tpuenv state restore {stack.name} {whole.generation}`")
        return False
    if live is None or live.state is not None:
        return True
    if dialog.ask("No whole version of it is kept. Delete it, to import what exists into a new one?"):
        versions.remove(clients, names, stack.name, live)
        dialog.say("    deleted; it stays in the bucket as an old version")
        return True
    dialog.leave(f"{stack.name}: its state is damaged, and no whole version is kept")
    return False


def _condition(kept: Sequence[Version], live: Version | None, *, lost: bool) -> str:
    if live is None:
        return "its state is gone" if kept else "no state yet"
    if live.state is None:
        return f"its state is damaged: {live.problem}"
    if lost:
        owned = f"only {', '.join(live.state.addresses)}" if live.state.addresses else "nothing"
        return f"its state is gone; Terraform began a new one, which holds {owned}"
    other = versions.of_other_lineage(kept, live)
    more = f"; of another lineage, from before Terraform began a new state, version {other} is kept" if other else ""
    return f"serial {live.state.serial}, {len(live.state.addresses)} resources{more}"


def _write_errored_state(clients: Clients, names: Names, stack: Stack, dialog: Dialog, kept: Sequence[Version]) -> bool:
    """Whether the bucket now holds the state that Terraform had to leave in the stack's folder."""
    path = stack.folder / ERRORED
    if not path.is_file():
        return False
    content = path.read_bytes()
    try:
        state = versions.parse(content)
    except ValueError as error:
        dialog.say(f"    {path} is no state ({error}); it stays as it is")
        return False
    dialog.say(f"    Terraform left {path}: serial {state.serial}, {len(state.addresses)} resources")
    if not _is_newest(state, kept):
        dialog.say("    the bucket has had a newer state, or one of another lineage; it stays as it is")
        return False
    if not dialog.ask("Write it into the bucket?"):
        dialog.leave(f"{stack.name}: {path} is not in the bucket")
        return False
    serial = versions.replace(clients, names, stack.name, content, another_lineage=True)
    path.rename(path.with_name(f"{ERRORED}.in-the-bucket"))
    dialog.say(f"    written, as serial {serial}")
    return True


def _is_newest(state: State, kept: Sequence[Version]) -> bool:
    others = [version.state for version in kept if version.state is not None]
    return all(other.lineage == state.lineage and other.serial < state.serial for other in others)
