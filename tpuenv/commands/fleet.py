"""`tpuenv fleet`: the fleet.yaml that says what vars.env says now."""

from __future__ import annotations

import argparse
import sys

from environment import project
from environment.fleet.text import fleet_text
from environment.settings.model import KEYS_OF_THE_FLEET
from tpuenv.failure import WrongArgument

_DESCRIPTION = f"""\
Prints the fleet.yaml that describes this environment as it is: deployed with it, nothing
changes. Write it beside vars.env (--write), empty {", ".join(KEYS_OF_THE_FLEET[:-1])} and
{KEYS_OF_THE_FLEET[-1]} there, and go on from that: more kinds of slice, more teams. With a
fleet.yaml it prints what that one says, without what is default.
"""

_EPILOG = """\
examples:
  tpuenv fleet                 to look at
  tpuenv fleet --write         to go on from

What a pool group and a team may say is in docs/fleet.md.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "fleet",
        help="print the fleet.yaml that equals the settings of now",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--write", action="store_true", help="write it to fleet.yaml, where there is none yet")


def run(args: argparse.Namespace) -> int:
    """0; environment.Refused for settings that are wrong, WrongArgument where a file would be lost."""
    path = project.folder() / "fleet.yaml"
    has_fleet = path.is_symlink() or path.exists()
    if has_fleet and path.is_file() and path.stat().st_size == 0:
        raise WrongArgument(
            "fleet.yaml is empty: a shell that redirects into a file empties it first. Restore it if something was in "
            "it (git checkout fleet.yaml), else remove it; then run `tpuenv fleet --write`"
        )
    if args.write and has_fleet:
        raise WrongArgument("--write: there is a fleet.yaml already, and it stays as it is; move it away first")
    found = project.wanted()
    text = fleet_text(found.groups, found.teams, fair_sharing=found.fair_sharing, zone=found.settings.zone)
    if args.write:
        path.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    if has_fleet:
        print("This is what fleet.yaml says.", file=sys.stderr)
    else:
        keys = " ".join(f"{key}=" for key in KEYS_OF_THE_FLEET)
        print(f"As fleet.yaml beside a vars.env with {keys} (empty), this changes nothing.", file=sys.stderr)
    return 0
