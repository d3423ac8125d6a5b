"""The lines of a log: each once, in order, and safe for a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuenv.jobs.log import Position, new_lines, shown


def stamped(seconds: int, text: str, nanoseconds: int = 0) -> bytes:
    return f"2026-01-01T00:00:{seconds:02}.{nanoseconds:09}Z {text}".encode()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"plain", "plain"),
        ("loss 1.2 \u2192 0.9 \u00e9\u4e2d".encode(), "loss 1.2 \u2192 0.9 \u00e9\u4e2d"),
        (b"\x1b[31mred\x1b[0m \x07", "\\x1b[31mred\\x1b[0m \\x07"),
        (b"bytes \xff\xfe", "bytes \\xff\\xfe"),
        (b"a\tb", "a       b"),
        (b"  1%|#\r 50%|###\r100%|#####\r", "100%|#####"),
        ("right \u202e left".encode(), "right \\u202e left"),
        (b"", ""),
    ],
)
def test_a_line_is_shown_as_a_terminal_would_leave_it_and_nothing_is_obeyed(line: bytes, words: str) -> None:
    assert shown(line) == words


def test_a_line_without_a_time_is_shown_as_it_is() -> None:
    assert list(new_lines([b"failed to get the log", b""], Position())) == ["failed to get the log", ""]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12).map(sorted),
    st.lists(st.integers(0, 12), max_size=5).map(sorted),
)
def test_a_log_that_is_read_again_and_again_gives_each_line_once(
    times: list[tuple[int, int]], breaks: list[int]
) -> None:
    """Each time the connection ends somewhere, and the log is read from the last line's second on."""
    lines = [stamped(second, str(number), nano) for number, (second, nano) in enumerate(times)]
    position, read = Position(), list[str]()
    for end in [*breaks, len(lines)]:
        since = position.time[:19].encode()
        read += new_lines([line for line in lines[:end] if line[:19] >= since], position)
    assert read == [str(number) for number in range(len(lines))]
