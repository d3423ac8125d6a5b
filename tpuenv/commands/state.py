"""`tpuenv state`: the versions of a stack's state that the bucket keeps, and going back to one of them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from environment import project
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.failure import Failed
from tpuenv.terminal import dialog
from tpuenv.terraform.stacks import selected_stacks, synthesize

if TYPE_CHECKING:
    from tpuenv.state.versions import Version


@click.group(
    short_help="old versions of the state: list them, go back to one",
    epilog="""\
\b
examples:
  tpuenv state versions
  tpuenv state versions queues
  tpuenv state restore queues 1763712345678901

Exit codes: 0 done, 1 could not be done or was declined, 2 wrong settings or arguments.
""",
)
def state() -> None:
    """The state bucket keeps old versions of every state: the last 30, and all of the last 30 days. A state only says
    what Terraform owns: going back to an old one changes nothing in the cloud. What the old one does not have is in
    no state then (`tpuenv recover` imports it), and what it has and is gone is created again by the next deploy.
    """


@command(summary="the versions of a stack's state, newest first")
@options.stack(required=False, help="only this one; every one that has a state if none is named")
def versions(*, stack: str | None) -> None:
    """The versions of a stack's state, newest first."""
    environment = project.load_for_google()
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.google.clients import connect
    from tpuenv.state import versions as states

    clients, names = connect(environment.settings.project_id), environment.names
    stacks = [stack] if stack else states.stacks(clients, names)
    for name in stacks:
        kept = states.read_versions(clients, names, name)
        if not kept:
            _refuse_without_versions(name)
        _show(name, kept)
    if not stacks:
        print(f"gs://{names.state_bucket}/{names.state_prefix}/ holds no state yet.")


def _refuse_without_versions(stack: str) -> NoReturn:
    """Raises WrongArgument for a name that no stack has, else Failed: a stack that is gone can have versions."""
    with tempfile.TemporaryDirectory() as folder:
        selected_stacks(synthesize(Path(folder)), [stack])
    raise Failed(f"{stack}: there is no state of it, and none was kept")


def _show(stack: str, kept: Sequence[Version]) -> None:
    print(f"{stack}:")
    print("  generation         written (UTC)        serial  resources  lineage")
    for version in kept:
        when = f"{version.when:%Y-%m-%d %H:%M:%S}" if version.when else ""
        start = f"  {version.generation:<17}  {when:19}"
        live = "  live" if version.live else ""
        if version.state is None:
            print(f"{start}  damaged: {version.problem}{live}")
        else:
            row = version.state
            print(f"{start}  {row.serial:6}  {len(row.addresses):9}  {row.lineage}{live}")


@command(
    summary="put an old version in the place of the present state",
    examples=("tpuenv state restore queues 1763712345678901",),
)
@options.stack()
@click.argument("generation", type=int, metavar="GENERATION", help="the number that `versions` shows")
@options.flag("--yes", "do not ask")
@options.flag("--another-lineage", "also if a new state was begun since, after which it has other objects")
def restore(*, stack: str, generation: int, yes: bool, another_lineage: bool) -> int:
    """Shows what differs and asks. Honours the lock, and keeps the present state as an old version."""
    environment = project.load_for_google()
    from tpuenv.google.clients import connect
    from tpuenv.state import versions as states

    clients, names = connect(environment.settings.project_id), environment.names
    kept = states.read_versions(clients, names, stack)
    if not kept:
        _refuse_without_versions(stack)
    version = next((version for version in kept if version.generation == generation), None)
    if version is None:
        raise Failed(f"{stack}: no version {generation} is kept; `tpuenv state versions {stack}` shows which are")
    present = states.live_version(kept)
    if present is version:
        print(f"{stack}: version {version.generation} is the present one.")
        return 0
    _show_differences(stack, present, version)
    if not yes:
        dialog.require_person("state restore", "add --yes if you know what it does")
        if not dialog.confirmed(f"Put version {version.generation} in the place of the present state?"):
            print("Nothing was changed.")
            return 1
    serial = states.replace(clients, names, stack, version.content, another_lineage=another_lineage)
    print(f"Restored as serial {serial}; the state that was there is kept as an old version.")
    print(f"Next: tpuenv recover {stack}, which imports what this state does not have")
    return 0


def _show_differences(stack: str, present: Version | None, version: Version) -> None:
    before = set(present.state.addresses) if present is not None and present.state is not None else set()
    after = set(version.state.addresses) if version.state is not None else set()
    print(f"{stack}: from {present or 'no state'}\n  to {version}")
    for address in sorted(before - after):
        print(f"  - {address} would be in no state")
    for address in sorted(after - before):
        print(f"  + {address}")
    if before == after:
        print("  both own the same resources")


state.add_command(versions)
state.add_command(restore)
