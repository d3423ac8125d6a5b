"""The folder that a rehearsal works in, and empties: never one that holds, or may come to hold, anything else."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

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
