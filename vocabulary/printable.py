"""Writes text from files, clusters and clouds safely on one line of a terminal."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence


def printable(text: str) -> str:
    """The text, with every character that a terminal cannot show or would obey written as an escape."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def shortened(text: str, *, longest: int) -> str:
    """At most `longest` characters of the text, printable; three dots at the end where more followed."""
    return printable(text if len(text) <= longest else text[: longest - 3] + "...")


def quoted(value: str, *, longest: int = 80) -> str:
    """The value in quotes, printable, at most `longest` characters of it."""
    return f"'{shortened(value, longest=longest)}'"


def limited(lines: Iterable[str], *, most: int = 20) -> str:
    """At most `most` of the lines, each on its own; then "and 5 more" where more followed."""
    shown = list(lines)
    if len(shown) > most:
        shown[most:] = [f"and {len(shown) - most} more"]
    return "\n".join(shown)


def listed(names: Sequence[str], *, most: int = 3) -> str:
    """ "a, b, c", and where more follow "a, b, c and 2 more"."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(number: int, noun: str) -> str:
    """ "1 host", "4 hosts" """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def brief(value: object) -> str:
    """The repr of a value of any type, shortened however large or deeply nested the value is."""
    try:
        return reprlib.repr(value)
    except ValueError:  # an integer of more digits than Python converts
        return "a number of thousands of digits"
