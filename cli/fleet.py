"""`tpuenv fleet`: the fleet.yaml that says what vars.env says now."""

from __future__ import annotations

import argparse
import sys

from cli import project
from environment.fleet_text import fleet_text
from environment.settings import KEYS_OF_THE_FLEET

_DESCRIPTION = f"""\
Prints the fleet.yaml that describes this environment as it is: deployed with it, nothing
changes. Write it to a file beside vars.env, empty {", ".join(KEYS_OF_THE_FLEET[:-1])} and
{KEYS_OF_THE_FLEET[-1]} there, and go on from that: more kinds of slice, more teams. With a
fleet.yaml it prints what that one says, without what is default.
"""

_EPILOG = """\
examples:
  tpuenv fleet                 to look at
  tpuenv fleet > fleet.yaml    to go on from

What a pool group and a team may say is in README.md, "Several kinds of slice, several teams".
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    subparsers.add_parser(
        "fleet",
        help="print the fleet.yaml that equals the settings of now",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def run(_: argparse.Namespace) -> int:
    """0; environment.Refused for settings that are wrong."""
    path = project.folder() / "fleet.yaml"
    # `> fleet.yaml` has made the file, empty, before this begins.
    has_fleet = path.is_symlink() or (path.exists() and (not path.is_file() or path.stat().st_size > 0))
    found = project.wanted(with_fleet=has_fleet)
    text = fleet_text(found.groups, found.teams, fair_sharing=found.fair_sharing, zone=found.settings.zone)
    print(text, end="")
    if has_fleet:
        print("This is what fleet.yaml says.", file=sys.stderr)
    else:
        keys = " ".join(f"{key}=" for key in KEYS_OF_THE_FLEET)
        print(f"As fleet.yaml beside a vars.env with {keys} (empty), this changes nothing.", file=sys.stderr)
    return 0
