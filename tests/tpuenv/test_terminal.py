"""What is printed fits 80 columns, and has colours only where a terminal shows them and nobody refuses them."""

from __future__ import annotations

import io
import os
import pty
from collections.abc import Iterator
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuenv.terminal.colours import WIDTH, Tone, is_coloured, is_moving, painted, wrapped

WORDS = st.lists(st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=100))


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as out:
        yield out
    os.close(ours)


@given(WORDS, st.integers(0, 8))
def test_no_line_is_wider_than_80_columns_but_for_a_word_that_is(words: list[str], indent: int) -> None:
    text = " " * indent + " ".join(words)
    lines = list(wrapped(text))
    assert [word for line in lines for word in line.split()] == text.split(), "no word is lost or broken"
    assert all(len(line) <= WIDTH or len(line.split()) == 1 for line in lines), lines


def test_a_broken_line_goes_on_under_its_beginning() -> None:
    lines = list(wrapped("    dev: " + "word " * 30))
    assert len(lines) > 1
    assert all(line.startswith("      word") for line in lines[1:])


def test_lines_that_fit_stay_as_they_are() -> None:
    assert list(wrapped("a   b\n\n  c")) == ["a   b", "", "  c"]


def test_a_terminal_gets_colours_and_a_line_that_moves(terminal: TextIO) -> None:
    assert is_coloured(terminal, {"TERM": "xterm"})
    assert is_moving(terminal, {"TERM": "xterm"})


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"FORCE_COLOR": "0"}], ids=str)
def test_a_terminal_without_colours_gets_none(terminal: TextIO, environ: dict[str, str]) -> None:
    assert not is_coloured(terminal, {"TERM": "xterm", **environ})


def test_a_dumb_terminal_has_no_line_that_moves(terminal: TextIO) -> None:
    assert not is_moving(terminal, {"TERM": "dumb"})


def test_a_file_gets_no_colours_unless_they_are_forced() -> None:
    assert not is_coloured(io.StringIO(), {"TERM": "xterm"})
    assert is_coloured(io.StringIO(), {"FORCE_COLOR": "1"})
    assert not is_coloured(io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert not is_moving(io.StringIO(), {"FORCE_COLOR": "1"})


def test_paint_goes_off_at_the_end() -> None:
    assert painted("ok", Tone.GOOD, coloured=True) == "\033[32mok\033[0m"
    assert painted("ok", Tone.GOOD, coloured=False) == painted("ok", None, coloured=True) == "ok"
