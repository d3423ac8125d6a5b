"""Lines of 80 columns, and colours only where a terminal shows them."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TextIO

WIDTH = 80  # columns


class Tone(Enum):
    """The meaning of a colour. The value is the parameter of the escape sequence (ECMA-48, SGR)."""

    TITLE = "1"
    GOOD = "32"
    WARNING = "33"
    BAD = "31"


def is_moving(out: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether it is a terminal on which a line can be redrawn."""
    return out.isatty() and environ.get("TERM") != "dumb"


def is_coloured(out: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to print colours. NO_COLOR wins over FORCE_COLOR, where 0 means no.

    https://no-color.org, https://force-color.org
    """
    if environ.get("NO_COLOR"):
        return False
    forced = environ.get("FORCE_COLOR", "")
    return forced != "0" if forced else is_moving(out, environ)


def painted(text: str, tone: Tone | None, *, coloured: bool) -> str:
    """The text in the colour of its tone, if it has one and colours are on."""
    return f"\033[{tone.value}m{text}\033[0m" if tone and coloured else text


def wrapped(text: str, *, under: int | None = None) -> Iterator[str]:
    """The lines of a text, none wider than WIDTH unless one word is.

    A line that is broken goes on in column `under`, or two to the right of where it begins.
    """
    for line in text.splitlines():
        if len(line) <= WIDTH:
            yield line
            continue
        indent = len(line) - len(line.lstrip()) + 2 if under is None else under
        yield from textwrap.wrap(
            line, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
        )
