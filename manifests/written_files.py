"""Writes rendered files into a folder, in place of those that an earlier run wrote there, and of no others."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from vocabulary.printable import limited, printable
from vocabulary.text_file import replace_text

_RECORD = ".rendered"  # in the folder: the files that the last run wrote, as a JSON list


class NotWritten(ValueError):
    """Files cannot be written. The text has a line for every reason."""


def write_files(folder: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Writes each text to its path in the folder; returns the files.

    Files that an earlier run wrote and this one did not are deleted. Raises NotWritten, and writes nothing, if a file
    would replace one that no run wrote; and if the file system refuses.
    """
    try:
        earlier = _earlier(folder)
        stale = _stale(folder, set(earlier or ()).difference(texts))
        if obstacles := list(_obstacles(folder, texts, earlier, stale)):
            raise NotWritten(limited(obstacles))
        _write(folder, texts, earlier or (), stale)
    except OSError as error:
        path = error.filename2 or error.filename or folder
        raise NotWritten(f"{printable(str(path))}: {error.strerror or error}") from None
    return tuple(folder / path for path in texts)


def _earlier(folder: Path) -> frozenset[str] | None:
    """What the last run wrote, as paths in the folder; None if there is no record of it that can be read."""
    try:
        paths = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        return None
    return frozenset(str(Path(path)) for path in paths)


def _stale(folder: Path, paths: Iterable[str]) -> list[Path]:
    """The files of these that are in the folder itself, not behind `..` or a symbolic link."""
    inside = (folder / path for path in paths if ".." not in Path(path).parts)
    return [
        file
        for file in inside
        if os.path.lexists(file)
        and file.is_relative_to(folder)
        and not any(parent.is_symlink() for parent in _between(folder, file))
        and (file.is_symlink() or not file.is_dir())
    ]


def _between(folder: Path, file: Path) -> list[Path]:
    """The folders in `folder` that the file is in, the innermost first."""
    return [folder / parent for parent in file.relative_to(folder).parents[:-1]]


def _obstacles(
    folder: Path, texts: Mapping[str, str], earlier: Collection[str] | None, stale: Collection[Path]
) -> Iterator[str]:
    """A message for each path where a file cannot be written, or would replace one that no run wrote."""
    going = {*stale, *(parent for file in stale for parent in _between(folder, file))}
    obstacles = {}
    for path, text in texts.items():
        file = folder / path
        for parent in _between(folder, file):
            if parent.is_symlink() or (parent.exists() and not parent.is_dir()):
                obstacles[parent] = parent not in stale
        if file.is_symlink() or file.is_file():
            equal = not file.is_symlink() and file.read_bytes() == text.encode()
            obstacles[file] = earlier is not None and path not in earlier and not equal
        elif file.exists():
            obstacles[file] = not going.issuperset([file, *file.rglob("*")])
    for file, stays in obstacles.items():
        if stays:
            yield f"{printable(str(file))}: not written by an earlier synthesis; move it away"


def _write(folder: Path, texts: Mapping[str, str], earlier: Iterable[str], stale: Iterable[Path]) -> None:
    """Deletes what is stale, which could still be submitted, then writes the files."""
    folder.mkdir(parents=True, exist_ok=True)
    # Both, so that the next run knows its predecessor's files wherever this one ends.
    replace_text(folder / _RECORD, json.dumps(sorted({*earlier, *texts})))
    for file in stale:
        file.unlink()
        for parent in _between(folder, file):
            if not any(parent.iterdir()):
                parent.rmdir()
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_text(file, text)
    replace_text(folder / _RECORD, json.dumps(list(texts)))
