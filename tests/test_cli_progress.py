"""Whoever waits sees what for: at a terminal in a line that moves, in a log in lines."""

from __future__ import annotations

import io
import time

import pytest

from cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def until(out: io.StringIO, words: str) -> None:
    limit = time.monotonic() + 10
    while words not in out.getvalue():
        assert time.monotonic() < limit, out.getvalue()
        time.sleep(0.01)


def test_in_a_log_a_step_that_takes_long_is_told_in_lines() -> None:
    out = io.StringIO()
    with Progress(out=out, every=0.02) as progress:
        progress.doing("test")
        until(out, "test: 0 s, still running\n")
        progress.line("done")
    assert "\033" not in out.getvalue() and "\r" not in out.getvalue()
    assert "\ndone\n" in out.getvalue()


def test_at_a_terminal_the_line_moves_and_makes_way_for_others() -> None:
    out = Terminal()
    with Progress(out=out, every=0.02) as progress:
        progress.doing("test")
        until(out, "test: 0 s")
        progress.line("said")
    assert "\n" not in out.getvalue().partition("said")[0]
    assert "\r\033[Ksaid\n" in out.getvalue()
    assert out.getvalue().endswith("\r\033[K"), "nothing of it is left"


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()], ids=["log", "terminal"])
def test_where_nothing_runs_nothing_is_told(out: io.StringIO) -> None:
    with Progress(out=out, every=0.01) as progress:
        progress.doing("test")
        progress.doing("")
        time.sleep(0.05)
    assert "test" not in out.getvalue().replace("test: 0 s", "", 1)
