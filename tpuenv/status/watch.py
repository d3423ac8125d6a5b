"""Shows lines again and again: on a terminal in place, in a file one after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import NoReturn, TextIO

from tpuenv.kubernetes.errors import Unreachable
from tpuenv.terminal.colours import is_moving

# ECMA-48: the cursor to the first cell; what is right of it in its line; what is below it.
_HOME, _TO_END_OF_LINE, _BELOW, _ALL = "\033[H", "\033[K", "\033[J", "\033[2J"


def watch(
    lines: Callable[[], Sequence[str]], *, out: TextIO, seconds: float, patience: float, in_place: bool = True
) -> NoReturn:
    """Until Ctrl-C. `lines` are read every `seconds`, which grow where reading takes long.

    On a terminal, if it is `in_place`, each line is written over its predecessor, so that nothing flickers; what does
    not fit is left out. A cluster that does not answer is asked again for `patience` seconds, and what was read last
    stays. Raises Unreachable.
    """
    moves, shown, lost = in_place and is_moving(out), False, 0.0
    while True:
        began = time.monotonic()
        try:
            text, lost = list(lines()), 0.0
        except Unreachable:
            lost = lost or began
            if began - lost > patience:
                raise
            time.sleep(seconds)
            continue
        if moves:
            out.write(("" if shown else _ALL) + screen(text, *_size(out)))
        elif not in_place:
            out.write("".join(f"{line}\n" for line in text))
        else:
            heading = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
            out.write("\n".join([*([""] if shown else []), heading, *text]) + "\n")
        shown = True
        out.flush()
        time.sleep(max(seconds, 3 * (time.monotonic() - began)))


def screen(lines: Sequence[str], columns: int, rows: int) -> str:
    """What draws the lines over those that are there: none is wrapped, and the last row stays free."""
    fitting = list(lines[: max(rows - 1, 1)])
    if len(fitting) < len(lines):
        fitting[-1] = f"... and {len(lines) - len(fitting) + 1} lines more"
    return _HOME + "".join(f"{line[:columns]}{_TO_END_OF_LINE}\n" for line in fitting) + _BELOW


def _size(out: TextIO) -> tuple[int, int]:
    """Columns and rows of the terminal, which may change while it is watched."""
    try:
        size = os.get_terminal_size(out.fileno())
    except (OSError, ValueError):
        return 80, 24
    return size.columns or 80, size.lines or 24
