"""Progress of a command that waits: at a terminal in a line that moves, in a log in lines."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
import threading
from collections.abc import Iterator
from typing import TextIO

import pytest

from tpuenv.terminal.colours import Tone
from tpuenv.terminal.progress import Progress

COLUMNS = 40
TICK = 0.01  # seconds: as often as the test of a thread can bear


class Written(io.StringIO):
    """What is written, for who waits until it is there."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()

    def write(self, text: str) -> int:
        with self._changed:
            self._changed.notify_all()
            return super().write(text)

    def until(self, words: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: words in self.getvalue(), timeout=30), self.getvalue()


class Terminal(Written):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal_with_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)


@pytest.fixture
def narrow() -> Iterator[tuple[int, TextIO]]:
    """A real terminal of 40 columns: the end to read from, and the one to write to."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    with os.fdopen(theirs, "w") as out:
        yield ours, out
    os.close(ours)


def test_in_a_log_a_step_that_takes_long_is_shown_in_lines() -> None:
    out = Written()
    with Progress(out=out, every=TICK) as progress:
        progress.doing("test", "3 of 12")
        out.until("test: 0 s, still running (3 of 12)\n")
        progress.line("done")
    assert "\033" not in out.getvalue() and "\r" not in out.getvalue()
    assert "\ndone\n" in out.getvalue()


def test_in_a_log_what_is_soon_done_is_not_shown() -> None:
    out = Written()
    with Progress(out=out) as progress:
        for number in range(100):
            progress.doing("test", f"{number} of 100")
    assert out.getvalue() == ""


def test_at_a_terminal_the_line_moves_and_makes_way_for_others() -> None:
    out = Terminal()
    with Progress(out=out, every=TICK) as progress:
        progress.doing("test")
        out.until("test: 0 s")
        progress.line("said")
    assert "\n" not in out.getvalue().partition("said")[0]
    assert "\r\033[Ksaid\n" in out.getvalue()
    assert out.getvalue().rpartition("\r\033[K")[2] in ("", "said\n"), "nothing of it is left"


def test_at_a_terminal_every_change_is_shown_at_once() -> None:
    out = Terminal()
    with Progress(out=out, every=3600) as progress:
        for number in range(1, 4):
            progress.doing("cluster", f"{number} of 3")
    assert out.getvalue() == "".join(f"\r\033[K    cluster: 0 s, {number} of 3" for number in (1, 2, 3)) + "\r\033[K"


def test_the_line_that_moves_is_no_wider_than_the_terminal(narrow: tuple[int, TextIO]) -> None:
    ours, out = narrow
    with Progress(out=out, every=3600) as progress:
        progress.doing("cluster", "1 of 3, Creating " + "x" * 100)
    shown = os.read(ours, 4096).decode()
    assert "cluster: 0 s, 1 of 3" in shown
    assert max(len(line) for line in shown.replace("\033[K", "").split("\r")) < COLUMNS


def test_a_real_terminal_gets_colours_and_with_no_color_none(
    narrow: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, out = narrow
    Progress(out=out).line("ok", Tone.GOOD)
    assert os.read(ours, 4096) == b"\033[32mok\033[0m\r\n"
    monkeypatch.setenv("NO_COLOR", "1")
    Progress(out=out).line("ok", Tone.GOOD)
    assert os.read(ours, 4096) == b"ok\r\n"


def test_a_dumb_terminal_gets_lines(narrow: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch) -> None:
    ours, out = narrow
    monkeypatch.setenv("TERM", "dumb")
    with Progress(out=out, every=3600) as progress:
        progress.doing("cluster", "1 of 3")
        progress.line("done", Tone.GOOD)
    assert os.read(ours, 4096) == b"done\r\n"


@pytest.mark.parametrize("out", [Written(), Terminal()], ids=["log", "terminal"])
def test_where_nothing_runs_nothing_is_shown(out: Written) -> None:
    with Progress(out=out, every=TICK) as progress:
        progress.doing("first")
        progress.doing("")
        before = out.getvalue()
        progress.doing("second")
        out.until("second")
    assert "first" not in out.getvalue().removeprefix(before)
