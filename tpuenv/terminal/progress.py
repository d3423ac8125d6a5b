"""Progress of what takes minutes: at a terminal one line that is redrawn, in a log a line every 30 seconds."""

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
    """Shows what runs, how far it is, and for how many seconds. Other lines are printed through `line`, inside the
    context and outside.

    `every` is in seconds: how often it is shown. `still` follows the seconds in a log.
    """

    def __init__(
        self, *, out: TextIO | None = None, every: float | None = None, still: str = ", still running"
    ) -> None:
        self._out = out or sys.stdout
        self._moves, self._coloured = is_moving(self._out), is_coloured(self._out)
        self._still = still
        self._every = every or (_TERMINAL_SECONDS if self._moves else _LOG_SECONDS)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._doing, self._detail, self._since, self._next = "", "", 0.0, 0.0  # seconds of the monotonic clock
        self._shown = False  # whether the line that is redrawn is on the screen
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
        """Shows `what` from now on, "" for nothing; its seconds count from the first call with it."""
        with self._lock:
            if what != self._doing:
                self._doing, self._since = what, time.monotonic()
                self._next = self._since + self._every
            if detail != self._detail:
                self._detail = detail
                if self._moves and detail:
                    self._show()

    def line(self, text: str | None = None, tone: Tone | None = None) -> None:
        """Clears the line that is redrawn, and prints a text in its place, if there is one."""
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
            self._out.write(f"{words}{self._still}{detail}\n")
        self._out.flush()

    def _columns(self) -> int:
        """The most columns of the line that is redrawn: a wrapped line could not be cleared."""
        try:
            return min(WIDTH, os.get_terminal_size(self._out.fileno()).columns or WIDTH)
        except (OSError, ValueError):
            return WIDTH
