"""Processes that a rehearsal has started, written down so that the next one can end what a killed one left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

_PATIENCE_SECONDS = 10.0


def started(pid: int) -> str:
    """When a process started, in whatever form this system tells it; "" when there is no such process."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            return "" if fields[0] == "Z" else fields[19]
        return ""
    done = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def record(folder: Path, pid: int) -> None:
    """Write a process down. A process id alone would not do: it may belong to somebody else by the time it is read."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(pid)).write_text(started(pid))


def forget(folder: Path, pid: int) -> None:
    (folder / str(pid)).unlink(missing_ok=True)


def recorded(folder: Path) -> list[int]:
    """The processes written down in `folder` that still are what they were."""
    found = []
    for note in folder.glob("[0-9]*") if folder.is_dir() else ():
        since = note.read_text()
        if since and started(int(note.name)) == since:
            found.append(int(note.name))
    return found


def end(folder: Path) -> int:
    """End all processes written down in `folder`: how many there were. Terraform gets time to put its lock away."""
    pids = recorded(folder)
    for pid in pids:
        _signal(pid, signal.SIGTERM)
    limit = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < limit and recorded(folder):
        time.sleep(0.05)
    for pid in recorded(folder):
        _signal(pid, signal.SIGKILL)
    while recorded(folder):
        time.sleep(0.01)
    return len(pids)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
