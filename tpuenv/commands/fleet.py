"""`tpuenv fleet`: the fleet.yaml that equals the present settings."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

from environment import project
from environment.fleet.text import fleet_text
from environment.settings.model import KEYS_OF_THE_FLEET
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.failure import Failed, WrongArgument
from vocabulary.text_file import new_file_for

_EXISTS = "--write: there is a fleet.yaml already, and it stays as it is; move it away first"


@command(
    summary="print the fleet.yaml that equals the present settings",
    help=f"""\
Prints the fleet.yaml that describes this environment as it is: deployed with it, nothing changes. Write it beside
vars.env (--write), empty {", ".join(KEYS_OF_THE_FLEET[:-1])} and {KEYS_OF_THE_FLEET[-1]} there, and go on from that:
more kinds of slice, more teams. With a fleet.yaml it prints what that file says, without what is default.
""",
    examples=("tpuenv fleet                 to read", "tpuenv fleet --write         to go on from"),
    notes="The keys of a pool group and a team are in docs/fleet.md.",
)
@options.flag("--write", "write it to fleet.yaml, where there is none yet")
def fleet(*, write: bool) -> None:
    """Raises environment.Refused for settings that are wrong, WrongArgument where a file would be lost.

    Raises Failed if fleet.yaml cannot be written.
    """
    path = project.folder() / "fleet.yaml"
    has_fleet = path.is_symlink() or path.exists()
    if has_fleet and path.is_file() and path.stat().st_size == 0:
        raise WrongArgument(
            "fleet.yaml is empty: a shell that redirects into a file empties it first. Restore it if something was in "
            "it (git checkout fleet.yaml), else remove it; then run `tpuenv fleet --write`"
        )
    if write and has_fleet:
        raise WrongArgument(_EXISTS)
    environment = project.load_and_warn()
    text = fleet_text(
        environment.groups,
        environment.teams,
        environment.tpu_vms,
        fair_sharing=environment.fair_sharing,
        zone=environment.settings.zone,
        host_access=environment.settings.xpk_compatibility,
    )
    if write:
        _write_new(path, text)
        keys = f"{', '.join(KEYS_OF_THE_FLEET[:-1])} and {KEYS_OF_THE_FLEET[-1]}"
        print(f"Wrote {path}. Now empty {keys} in vars.env; then nothing changes.")
        return
    print(text, end="")
    if has_fleet:
        print("This is what fleet.yaml says.", file=sys.stderr)
    else:
        keys = " ".join(f"{key}=" for key in KEYS_OF_THE_FLEET)
        print(f"As fleet.yaml beside a vars.env with {keys} (empty), this changes nothing.", file=sys.stderr)


def _write_new(path: Path, text: str) -> None:
    """Writes all of the file or none of it, and never over another. Raises WrongArgument, Failed."""
    try:
        with new_file_for(path, text) as new:
            _move(new, path)
    except FileExistsError:
        raise WrongArgument(_EXISTS) from None
    except OSError as error:
        raise Failed(f"{path}: cannot be written: {error.strerror}") from None


def _move(new: Path, path: Path) -> None:
    try:
        os.link(new, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        new.replace(path)  # a file system without hard links
