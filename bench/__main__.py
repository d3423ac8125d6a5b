"""`python -m bench`: measures, prints the table and the targets that are missed."""

from __future__ import annotations

import argparse
import os
import sys
from itertools import pairwise
from pathlib import Path

from bench.measure import BIN, OUTPUT, ROOT, Command, Failed, Memory, Seconds, interleaved, memory, seconds
from bench.table import markdown, pairwise_growth, write

SLICES = (1, 64, 256, 1024)
PLAIN = {"TPUENV_PLAIN_BINDINGS": "1"}
# 1,024 slices of 4 hosts and more do not fit in the default ranges.
ROOMY = {
    "TPU_TYPE": "v6e-16",
    "SUBNET_CIDR": "10.16.0.0/16",
    "PODS_CIDR": "10.64.0.0/13",
    "SERVICES_CIDR": "10.1.0.0/20",
}

LONGEST_SECONDS = 2.0
LARGEST_RATIO = 0.15
LONGEST_REHEARSAL_SECONDS = 120.0


def commands(*, rehearsal: bool) -> list[Command]:
    python: list[str | Path] = [BIN / "python", "main.py"]
    cdktf: list[str | Path] = [BIN / "cdktf", "synth", "--output", OUTPUT]
    measured = [
        Command(name="python main.py, ours", words=python, settings={}),
        Command(name="python main.py, plain", words=python, settings=PLAIN),
        Command(name="cdktf synth, ours", words=cdktf, settings={}),
        Command(name="cdktf synth, plain", words=cdktf, settings=PLAIN),
        *(Command(name=_of(count), words=python, settings={**ROOMY, "NUM_TPU_POOLS": str(count)}) for count in SLICES),
    ]
    if rehearsal:
        measured.append(Command(name="tpuenv rehearse", words=[BIN / "tpuenv", "rehearse"], settings={}))
    return measured


def _of(count: int) -> str:
    return f"python main.py, {count} slices"


def missed(times: dict[str, Seconds], slices: dict[int, Seconds]) -> list[str]:
    """The targets that these measurements miss, a sentence for each."""
    ours, plain = times["python main.py, ours"].median, times["python main.py, plain"].median
    problems = []
    if ours > LONGEST_SECONDS:
        problems.append(f"python main.py takes {ours:.2f} s, more than {LONGEST_SECONDS:.0f} s")
    if ours / plain > LARGEST_RATIO:
        problems.append(f"python main.py takes {ours / plain:.2f} of the plain way's time, more than {LARGEST_RATIO}")
    growth = pairwise_growth(slices)
    # Linear is a constant cost a slice; half as much again is more than what the runs differ by.
    for (fewer, before), (more, after) in pairwise(growth):
        if after > 1.5 * before:
            problems.append(
                f"a slice costs {after * 1000:.1f} ms up to {more} slices and {before * 1000:.1f} ms up to {fewer}: "
                f"more than linear"
            )
    rehearsal = times.get("tpuenv rehearse")
    if rehearsal and rehearsal.median > LONGEST_REHEARSAL_SECONDS:
        problems.append(f"a rehearsal takes {rehearsal.median:.0f} s, more than {LONGEST_REHEARSAL_SECONDS:.0f} s")
    return problems


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--write", action="store_true", help="write the table into docs/performance.md too")
    parser.add_argument("--runs", type=int, default=5, help="runs of everything (default: 5)")
    parser.add_argument("--no-rehearsal", action="store_true", help="leave the whole rehearsal out")
    options = parser.parse_args(arguments)
    if os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
        print("bench: this machine is busy with something else; its numbers will be too", file=sys.stderr)
    todo = commands(rehearsal=not options.no_rehearsal)
    try:
        # Not measured: it compiles our own files and brings everything into the disk's cache.
        for command in todo[:4]:
            seconds(command)
        peaks: dict[str, Memory] = {"ours": memory(todo[0]), "plain": memory(todo[1])}
        times = interleaved(todo, options.runs)
    except Failed as failed:
        print(f"bench: {failed}", file=sys.stderr)
        return 1
    slices = {count: times[_of(count)] for count in SLICES}
    table = markdown(times=times, peaks=peaks, slices=slices, rehearsal=times.get("tpuenv rehearse"))
    print(table)
    if options.write:
        write(ROOT / "docs" / "performance.md", table)
    problems = missed(times, slices)
    for problem in problems:
        print(f"bench: target missed: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
