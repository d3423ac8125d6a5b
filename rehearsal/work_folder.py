"""The folder that a rehearsal works in, and empties: never one that holds, or may come to hold, anything else."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

# A file that says that a folder is a rehearsal's, and may be emptied for the next. Nothing else is called so.
MARK = ".tpuenv-rehearsal"

_CHECKOUT = Path(__file__).resolve().parent.parent
_ANOTHER = "name a new or an empty folder with --folder"


class CannotStart(Exception):
    """What keeps a rehearsal from starting, and what to do about it."""


def usable(folder: Path, *, ours: bool) -> Path:
    """The folder itself, wherever links lead, if it is new, empty, or a rehearsal's. Raises CannotStart.

    One that is known to be `ours` needs no mark.
    """
    try:
        if folder.is_symlink() and not folder.exists():
            raise _unusable(folder, "it is a symbolic link that leads nowhere")
        path = folder.resolve()
        if not path.exists():
            return path
        if not path.is_dir():
            raise _unusable(path, "it is a file")
        if any(place.is_relative_to(path) for place in _never()):
            raise _unusable(
                path,
                "a rehearsal empties its folder, and this one is, or holds, the home folder, the folder for temporary "
                "files, the present one or the checkout",
            )
        marked = (path / MARK).is_file() and not (path / MARK).is_symlink()
        if not (marked or ours) and any(path.iterdir()):
            raise _unusable(path, "a rehearsal empties its folder, and this one holds files that no rehearsal wrote")
    except OSError as error:
        raise cannot_be_used(folder, error) from error
    return path


def lock(folder: Path) -> IO[str]:
    """One rehearsal at a time in a folder. The lock ends with this process, or when the file is closed."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        held = folder.with_name(folder.name + ".lock").open("w")
    except OSError as error:
        raise cannot_be_used(folder, error) from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        held.close()
        raise CannotStart(f"another rehearsal is running in {folder}; wait for it, or use --folder") from error
    return held


def empty(folder: Path, *, ours: bool, end: Callable[[], object]) -> None:
    """Remove what an earlier rehearsal left, after `end` has ended its processes; raises CannotStart for a folder of
    anything else.
    """
    mark = folder / MARK
    try:
        folder.mkdir(exist_ok=True)
        usable(folder, ours=ours)
        end()
        # The mark is there first and stays: a rehearsal killed in between can be cleared away by the next.
        mark.touch()
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path != mark:
                path.unlink()
    except OSError as error:
        raise cannot_be_used(folder, error) from error


def check_temporary_folder() -> None:
    """Python would take another place for temporary files; node, which cdktf and jsii run in, does not."""
    folder = os.environ.get("TMPDIR")
    if folder and not (os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        raise CannotStart(f"TMPDIR: '{folder}' is not a folder that can be written to; name another, or unset it")


def cannot_be_used(folder: Path, error: OSError) -> CannotStart:
    """With the file that stands in the way, where that is another one."""
    where = f" ({error.filename})" if error.filename and str(error.filename) != str(folder) else ""
    return _unusable(folder, f"{error.strerror or error}{where}")


def _unusable(folder: Path, reason: str) -> CannotStart:
    return CannotStart(f"{folder} cannot be used: {reason}; {_ANOTHER}")


def _never() -> list[Path]:
    """Also while they are empty: what is put there later would be lost with the next rehearsal."""
    home = os.environ.get("HOME")
    places = [Path(tempfile.gettempdir()), Path.cwd(), _CHECKOUT, *([Path(home)] if home else [])]
    return [place.resolve() for place in places]
