"""Where a rehearsal has kept a token: in an object of a bucket (states, records), or in a file of its folder (logs)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from rehearsal.google.permissions import TOKEN
from rehearsal.world import ENVIRONMENT, World


def kept_tokens(world: World) -> list[str]:
    """The names of what holds the token of any account, deleted versions of objects among them."""
    secret = TOKEN.encode()
    named = [*world.cloud.contents(), *((str(path), text) for path in _files(world.folder) for text in _texts(path))]
    return sorted({name for name, content in named if secret in content})


def _files(folder: Path) -> Iterator[Path]:
    """Without the cloud itself, and the file that gives a person's shell the token."""
    for path in folder.rglob("*"):
        if path.name.startswith("cloud.db") or path == folder / ENVIRONMENT:
            continue
        if path.is_file() and not path.is_symlink():
            yield path


def _texts(path: Path) -> Iterator[bytes]:
    """A saved plan is an archive."""
    yield path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            yield from (archive.read(name) for name in archive.namelist())
