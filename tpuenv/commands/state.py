"""`tpuenv state`: the versions of a stack's state that the bucket keeps, and going back to one of them."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from environment import project
from tpuenv.failure import Failed
from tpuenv.terminal.dialog import asked

if TYPE_CHECKING:
    from environment.names import Names
    from tpuenv.google.clients import Clients
    from tpuenv.state.versions import Version

_DESCRIPTION = """\
The state bucket keeps old versions of every state: the last 30, and all of the last
30 days. A state only says what Terraform owns: going back to an old one changes
nothing in the cloud. What the old one does not know of is in no state then
(`tpuenv recover` imports it), and what it knows of and is gone is made again by the
next deploy.
"""

_EPILOG = """\
examples:
  tpuenv state versions
  tpuenv state versions queues
  tpuenv state restore queues 1763712345678901

Exit codes: 0 done, 1 could not be done or was not wanted, 2 wrong settings or arguments.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "state",
        help="old versions of the state: see them, go back to one",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(metavar="VERB", dest="verb", required=True)
    versions = verbs.add_parser("versions", help="the versions of a stack's state, newest first")
    versions.add_argument("stack", nargs="?", metavar="STACK", help="only this one; every one that has a state if none")
    restore = verbs.add_parser(
        "restore",
        help="put an old version in the place of the present state",
        description="Shows what differs and asks. Honours the lock, and keeps the present state as an old version.",
        epilog="example: tpuenv state restore queues 1763712345678901",
    )
    restore.add_argument("stack", metavar="STACK")
    restore.add_argument("generation", metavar="GENERATION", type=int, help="the number that `versions` shows")
    restore.add_argument("--yes", action="store_true", help="do not ask")
    restore.add_argument(
        "--another-lineage",
        action="store_true",
        help="also if the state was begun anew since, after which it knows other objects",
    )


def run(args: argparse.Namespace) -> int:
    wanted = project.real()
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.google.clients import connect
    from tpuenv.state import versions as states

    clients, names = connect(wanted.settings.project_id), wanted.names
    if args.verb == "restore":
        return _restore(clients, names, args)
    stacks = [args.stack] if args.stack else states.stacks(clients, names)
    for stack in stacks:
        _show(stack, states.read_versions(clients, names, stack))
    if not stacks:
        print(f"gs://{names.state_bucket}/{names.state_prefix}/ holds no state yet.")
    return 0


def _show(stack: str, found: list[Version]) -> None:
    print(f"{stack}:")
    if not found:
        raise Failed(f"{stack}: there is no state of it, and none was kept")
    print("  generation         written (UTC)        serial  resources  lineage")
    for version in found:
        when = f"{version.when:%Y-%m-%d %H:%M:%S}" if version.when else ""
        start = f"  {version.generation:<17}  {when:19}"
        live = "  live" if version.live else ""
        if version.state is None:
            print(f"{start}  damaged: {version.problem}{live}")
            continue
        state = version.state
        print(f"{start}  {state.serial:6}  {len(state.addresses):9}  {state.lineage}{live}")


def _restore(clients: Clients, names: Names, args: argparse.Namespace) -> int:
    from tpuenv.state import versions as states

    found = states.read_versions(clients, names, args.stack)
    version = next((each for each in found if each.generation == args.generation), None)
    if version is None:
        raise Failed(
            f"{args.stack}: no version {args.generation} is kept; `tpuenv state versions {args.stack}` shows which are"
        )
    present = states.live_version(found)
    if present is version:
        print(f"{args.stack}: version {version.generation} is the present one.")
        return 0
    _differences(args.stack, present, version)
    if not args.yes:
        if not (sys.stdin and sys.stdin.isatty()):
            raise Failed("state restore: there is no terminal to ask at; add --yes if you know what it does")
        if not asked(f"Put version {version.generation} in the place of the present state?"):
            print("Nothing was changed.")
            return 1
    serial = states.replace(clients, names, args.stack, version.content, another_lineage=args.another_lineage)
    print(f"Restored as serial {serial}; the state that was there is kept as an old version.")
    print(f"Next: tpuenv recover {args.stack}, which imports what this state does not know of")
    return 0


def _differences(stack: str, present: Version | None, version: Version) -> None:
    before = set(present.state.addresses) if present is not None and present.state is not None else set()
    after = set(version.state.addresses) if version.state is not None else set()
    print(f"{stack}: from {present or 'no state'}\n  to {version}")
    for address in sorted(before - after):
        print(f"  - {address} would be in no state")
    for address in sorted(after - before):
        print(f"  + {address}")
    if before == after:
        print("  both own the same resources")
