"""The folder that stacks and manifests are written to: whether anything can be, and may be, written there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from environment import project
from vocabulary.printable import quoted

# What a synthesis writes. cdktf writes manifest.json last: a synthesis that did not end can leave the others alone.
_MANIFEST = "manifest.json"
_WRITTEN = frozenset({_MANIFEST, "stacks", "manifests"})

# The folders of a virtual environment that its tools are in; () is the virtual environment itself.
_INSTALLED = ((), ("bin",), ("include",), ("lib",), ("lib64",), ("share",))


def problem_of(folder: Path) -> str | None:
    """Why nothing can be written to the folder, or must not be; None if it can.

    A folder inside the checkout must be new, empty or one that a synthesis wrote to. Nothing is left behind.
    """
    try:
        os.fspath(folder).encode()
        resolved = folder.absolute().resolve()
        if project.ROOT.is_relative_to(resolved):
            return f"{shown(folder)} holds this checkout; name a folder that is there for it alone"
        if resolved.is_relative_to(project.ROOT) and _is_of_the_checkout(resolved):
            return f"{shown(folder)} holds files of this checkout; name a folder that is there for it alone"
        for inner in (folder / "manifests", folder / "stacks"):
            present = next(path for path in (inner, *inner.absolute().parents) if _exists(path))
            if not present.is_dir():
                return f"{shown(folder if present == folder.absolute() else present)} is a file; name a folder"
            with tempfile.TemporaryFile(dir=present):
                pass
    except UnicodeEncodeError:
        return f"{shown(folder)} is not UTF-8; name another folder"
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links
        return f"{shown(folder)}: {getattr(error, 'strerror', None) or error}"
    return None


def shown(path: str | Path) -> str:
    """The path in quotes, on one line of a terminal."""
    return quoted(str(path), longest=1000)


def _is_of_the_checkout(resolved: Path) -> bool:
    """Whether git, the installed tools or anybody but a synthesis have files in this folder of the checkout."""
    inner = resolved.relative_to(project.ROOT).parts
    if inner[0] == ".git" or (inner[0] in (".venv", ".venv-workloads") and inner[1:2] in _INSTALLED):
        return True
    names = set(os.listdir(resolved)) if resolved.is_dir() else set()
    return _MANIFEST not in names and not names <= _WRITTEN


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
