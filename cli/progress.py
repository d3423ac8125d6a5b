"""Signs of life while something takes minutes: at a terminal a line that moves, in a log a line now and then."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TextIO

_CLEAR = "\r\033[K"
_TERMINAL_SECONDS = 1.0
_LOG_SECONDS = 30.0


class Progress:
    """Says what runs and for how many seconds. All lines that are printed meanwhile have to come through `line`."""

    def __init__(self, *, out: TextIO | None = None, every: float | None = None) -> None:
        self._out = out or sys.stdout
        self._moves = self._out.isatty()
        self._every = every or (_TERMINAL_SECONDS if self._moves else _LOG_SECONDS)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._doing, self._since = "", time.monotonic()
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

    def doing(self, what: str) -> None:
        """From now on it is this that runs; "" for nothing."""
        with self._lock:
            self._doing, self._since = what, time.monotonic()

    def line(self, text: str | None = None) -> None:
        """Prints a line in place of the one that moves, if there is a text."""
        with self._lock:
            if self._moves:
                self._out.write(_CLEAR)
            if text is not None:
                self._out.write(f"{text}\n")
            self._out.flush()

    def _tick(self) -> None:
        while not self._over.wait(self._every):
            with self._lock:
                if self._doing:
                    words = f"    {self._doing}: {time.monotonic() - self._since:.0f} s"
                    self._out.write(f"{_CLEAR}{words}" if self._moves else f"{words}, still running\n")
                    self._out.flush()
