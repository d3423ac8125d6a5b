"""Measures a command: its time, or the peak memory of its Python and Node processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.prefix) / "bin"
# Stands for a folder of the run's own, so that a cdktf.out of the user's stays as it is.
OUTPUT = "{output}"
HOOK = Path(__file__).with_name("peak_memory.cjs")

# Runs main.py as `python main.py` does, and leaves the process's peak memory behind, in kilobytes (macOS counts bytes).
REPORTING_PYTHON = """
import atexit, os, pathlib, resource, runpy, sys
def kib():
    # Linux adds the peak of the process that started this one to ru_maxrss, but not to VmHWM.
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
def report():
    peak = kib()
    pathlib.Path(os.environ["BENCH_FOLDER"], f"{os.getpid()}.python").write_text(str(peak))
atexit.register(report)
sys.path[0] = os.getcwd()
runpy.run_path("main.py", run_name="__main__")
"""


class Failed(Exception):
    """A measured command did not succeed."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """What is measured: a name for people, the program, and the variables of its environment."""

    name: str
    words: Sequence[str | Path]
    settings: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Peak memory in megabytes (10^6 bytes): of Python, and of the largest of its Node processes."""

    python: float
    node: float


@dataclass(frozen=True, kw_only=True)
class Seconds:
    """The wall-clock times of several runs of one command."""

    runs: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.runs)

    def __str__(self) -> str:
        digits = 0 if self.median >= 20 else 1 if self.median >= 5 else 2
        return f"{self.median:.{digits}f} s [{min(self.runs):.{digits}f}-{max(self.runs):.{digits}f}]"


def seconds(command: Command) -> float:
    """Run it once. Raises Failed, with the end of its output, when it does not exit with 0."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        words = [folder if word == OUTPUT else word for word in command.words]
        started = time.monotonic()
        _run(replace(command, words=words), {"CDKTF_OUTDIR": folder})
        return time.monotonic() - started


def memory(command: Command) -> Memory:
    """Run main.py once with the settings of `command`, such that every process reports its own peak."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        reporting = replace(command, words=[BIN / "python", "-c", REPORTING_PYTHON])
        hook = f"--require {json.dumps(str(HOOK), ensure_ascii=False)}"
        _run(reporting, {"CDKTF_OUTDIR": str(Path(folder, "out")), "BENCH_FOLDER": folder, "NODE_OPTIONS": hook})
        peaks = {
            kind: max(int(file.read_text()) for file in Path(folder).glob(f"*.{kind}")) * 1024 / 1e6
            for kind in ("python", "node")
        }
    return Memory(python=peaks["python"], node=peaks["node"])


def _run(command: Command, settings: Mapping[str, str]) -> None:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JSII_", "NODE_", "TPUENV_", "PYTHON")) and name != "CDKTF_OUTDIR"
    }
    ended = subprocess.run(
        [str(word) for word in command.words],
        cwd=ROOT,
        env={**inherited, **settings, **command.settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if ended.returncode != 0:
        last = "\n".join((ended.stdout + ended.stderr).strip().splitlines()[-15:])
        raise Failed(f"{command.name} ended with exit code {ended.returncode}:\n{last}")


def interleaved(commands: Sequence[Command], rounds: int) -> dict[str, Seconds]:
    """Time every command `rounds` times, each round running all of them, so that a slow spell meets them all."""
    runs: dict[str, list[float]] = {command.name: [] for command in commands}
    for number in range(1, rounds + 1):
        for command in commands:
            runs[command.name].append(seconds(command))
            print(f"bench: round {number}/{rounds}: {command.name}: {runs[command.name][-1]:.2f} s", file=sys.stderr)
    return {name: Seconds(runs=tuple(times)) for name, times in runs.items()}
