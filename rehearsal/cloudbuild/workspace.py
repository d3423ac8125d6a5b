"""The workspace of a build: the checkout as a commit would have it, in a fresh folder.

Cloud Build clones the commit into /workspace. Here what git follows, and what it would follow, is copied as it is now:
so a change can be rehearsed before it is committed, and nothing that is ignored is there. A commit is copied
once. Its builds get hard links: where many files were just deleted, ext4 takes milliseconds to make a new one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from rehearsal.work_folder import CannotStart


def files(checkout: Path) -> list[str]:
    """The paths of all files that a commit of everything would hold. Raises CannotStart where git does not know."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotStart("git: not found on the PATH; a build runs what git would have of this folder") from error
    if done.returncode:
        raise CannotStart(f"{checkout} is no git checkout, and a build runs what git would have of it")
    return [name for name in sorted(set(done.stdout.split("\0"))) if name and (checkout / name).exists()]


def copy(checkout: Path, folder: Path, *, changed: Mapping[str, str]) -> str:
    """Copies them into the new `folder`; `changed` are texts of files that this commit changes or adds. Its id."""
    for name in files(checkout):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(checkout / name, target, follow_symlinks=False)
    for name, text in changed.items():
        (folder / name).write_text(text, encoding="utf-8")
    return id_of(folder)


def id_of(folder: Path) -> str:
    """The id of a commit that holds all files of the folder."""
    digest = hashlib.sha1(usedforsecurity=False)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def link(commit: Path, folder: Path) -> None:
    """Makes the new `folder` with the files of `commit`, which a build may replace or delete, and not write into."""
    shutil.copytree(commit, folder, symlinks=True, copy_function=os.link)
