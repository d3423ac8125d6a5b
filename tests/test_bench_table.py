"""The table of measurements, from the numbers to the page, and which numbers miss a target."""

from __future__ import annotations

import os

import pytest

from bench.__main__ import missed
from bench.measure import Command, Failed, Memory, Seconds, memory, seconds
from bench.table import markdown, put_between_markers


def taken(*runs: float) -> Seconds:
    return Seconds(runs=runs)


TIMES = {
    "python main.py, ours": taken(1.4, 1.3, 1.9),
    "python main.py, plain": taken(19.0, 18.0, 22.0),
    "cdktf synth, ours": taken(3.5, 3.4, 3.6),
    "cdktf synth, plain": taken(21.0, 20.9, 25.0),
    "tpuenv rehearse": taken(50.0, 49.0, 55.0),
}
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
SLICES = {1: taken(1.5), 64: taken(1.8), 256: taken(2.76), 1024: taken(6.6)}


def test_the_table_shows_medians_ranges_ratios_and_the_cost_of_a_slice() -> None:
    table = markdown(
        times=TIMES,
        peaks={"ours": Memory(python=60, node=200), "plain": Memory(python=620, node=900)},
        slices=SLICES,
        rehearsal=TIMES["tpuenv rehearse"],
    )
    assert "| `python main.py` | 1.40 s [1.30-1.90] | 19.0 s [18.0-22.0] | 0.07x |" in table
    assert "| `cdktf synth` | 3.50 s [3.40-3.60] | 21 s [21-25] | 0.17x |" in table
    assert "| peak memory of Node | 200 MB | 900 MB | 0.22x |" in table
    assert "| `python main.py`, 1 slice | 1.50 s [1.50-1.50] | |  |" in table
    assert "| `python main.py`, 1,024 slices | 6.6 s [6.6-6.6] | | 5.0 ms a slice more |" in table
    assert "| `tpuenv rehearse` | 50 s [49-55] | | |" in table
    assert "of 3 interleaved runs" in table


def test_the_table_takes_the_place_of_the_one_before_and_of_nothing_else() -> None:
    text = f"# Title\n\n{BEGIN}\nold\n{END}\n\nMore.\n"
    assert put_between_markers(text, "bench", "new") == f"# Title\n\n{BEGIN}\nnew\n{END}\n\nMore.\n"


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END} {BEGIN}"])
def test_a_page_without_both_markers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no place for the table"):
        put_between_markers(text, "bench", "new")


def test_no_target_is_missed_by_these_numbers() -> None:
    assert missed(TIMES, SLICES) == []


@pytest.mark.parametrize(
    ("times", "slices", "words"),
    [
        ({"python main.py, ours": taken(2.1)}, {}, "more than 2 s"),
        ({"python main.py, plain": taken(7.0)}, {}, "0.20 of the plain way's time, more than 0.15"),
        ({"tpuenv rehearse": taken(121.0)}, {}, "more than 120 s"),
        ({}, {1024: taken(12.0)}, "more than linear"),
    ],
)
def test_a_missed_target_is_named(times: dict[str, Seconds], slices: dict[int, Seconds], words: str) -> None:
    (problem,) = missed({**TIMES, **times}, {**SLICES, **slices})
    assert words in problem


def test_a_command_that_fails_is_named_with_its_last_words() -> None:
    refused = Command(name="a command", words=["sh", "-c", "echo why >&2; exit 7"], settings={})
    with pytest.raises(Failed, match=r"(?s)a command ended with exit code 7:\nwhy"):
        seconds(refused)


@pytest.mark.slow
def test_a_run_measures_the_peak_memory_of_both_of_its_processes() -> None:
    settings = {"PROJECT_ID": "my-project", "TPUENV_FOLDER": os.environ["TPUENV_FOLDER"]}
    peak = memory(Command(name="main.py", words=[], settings=settings))
    assert 20 < peak.python < 150
    assert 80 < peak.node < 450
