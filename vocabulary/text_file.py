"""Text files in UTF-8: reads small ones that somebody wrote by hand, and never leaves half of one that is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vocabulary.printable import quoted


class Unreadable(ValueError):
    """The file cannot be read. The text says why, and reads on after the file's name."""


def read_text(path: Path, *, holds: str, most_kib: int = 1024) -> str:
    """The text, without a byte order mark. `holds` says in a message what such a file should hold."""
    most = most_kib << 10
    try:
        with path.open("rb") as stream:
            raw = stream.read(most + 1)
    except FileNotFoundError:
        raise Unreadable(f"there is no such file in {quoted(str(path.absolute().parent), longest=1000)}") from None
    except (OSError, ValueError) as error:
        raise Unreadable(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(raw) > most:
        raise Unreadable(f"is larger than {most_kib} KiB; it should hold {holds}")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        byte = raw[error.start]
        raise Unreadable(f"line {line} is not UTF-8 (byte 0x{byte:02x}); save the file as UTF-8") from None


def replace_text(path: Path, text: str) -> None:
    """Writes the whole file or leaves it as it was; a symbolic link is replaced, not followed. Raises OSError."""
    with new_file_for(path, text) as new:
        new.replace(path)


@contextmanager
def new_file_for(path: Path, text: str) -> Iterator[Path]:
    """A file with the text in the folder of `path`, to move there; it is removed where it was not. Raises OSError."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    try:
        with new.open("x", encoding="utf-8") as stream:
            stream.write(text)
        yield new
    finally:
        new.unlink(missing_ok=True)
