"""Signs of life while something takes minutes: at a terminal a line that moves, in a log a line now and then."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import TextIO

from tpuenv.terminal.colours import WIDTH, Tone, is_coloured, is_moving, painted

_CLEAR = "\r\033[K"
_TERMINAL_SECONDS = 1.0
_LOG_SECONDS = 30.0


class Progress:
    """Says what runs, how far it is, and for how many seconds. All lines that are printed meanwhile have to come
    through `line`, which also works before and after.
    """

    def __init__(self, *, out: TextIO | None = None, every: float | None = None) -> None:
        self._out = out or sys.stdout
        self._moves, self._coloured = is_moving(self._out), is_coloured(self._out)
        self._every = every or (_TERMINAL_SECONDS if self._moves else _LOG_SECONDS)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._doing, self._detail, self._since, self._next = "", "", 0.0, 0.0  # seconds of the monotonic clock
        self._shown = False  # whether the line that moves is on the screen
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self.line()

    def doing(self, what: str, detail: str = "") -> None:
        """From now on it is this that runs, "" for nothing; the seconds count from when `what` was first named."""
        with self._lock:
            if what != self._doing:
                self._doing, self._since = what, time.monotonic()
                self._next = self._since + self._every
            if detail != self._detail:
                self._detail = detail
                if self._moves and detail:
                    self._show()

    def line(self, text: str | None = None, tone: Tone | None = None) -> None:
        """Prints a line in place of the one that moves, if there is a text."""
        with self._lock:
            if self._shown:
                self._out.write(_CLEAR)
                self._shown = False
            if text is not None:
                self._out.write(f"{painted(text, tone, coloured=self._coloured)}\n")
            self._out.flush()

    def _tick(self) -> None:
        while not self._over.wait(min(self._every, _TERMINAL_SECONDS)):
            with self._lock:
                if self._doing and time.monotonic() >= self._next:
                    self._next += self._every
                    self._show()

    def _show(self) -> None:
        words = f"    {self._doing}: {time.monotonic() - self._since:.0f} s"
        if self._moves:
            detail = f", {self._detail}" if self._detail else ""
            self._out.write(f"{_CLEAR}{(words + detail)[: self._columns() - 1]}")
            self._shown = True
        else:
            detail = f" ({self._detail})" if self._detail else ""
            self._out.write(f"{words}, still running{detail}\n")
        self._out.flush()

    def _columns(self) -> int:
        """A line that is wider than the terminal would go on in the next, and stay there."""
        try:
            return min(WIDTH, os.get_terminal_size(self._out.fileno()).columns or WIDTH)
        except (OSError, ValueError):
            return WIDTH
