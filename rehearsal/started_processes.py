"""Processes that a rehearsal has started, written down so that the next one can end what a killed one left behind."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

FOLDER = "processes"  # where a World writes them down, in its own folder

_PATIENCE_SECONDS = 5.0


def started(pid: int) -> str:
    """When a process started, in the form that this system reports; "" when there is no such process."""
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
    running = []
    for note in folder.glob("[0-9]*") if folder.is_dir() else ():
        since = note.read_text()
        if since and started(int(note.name)) == since:
            running.append(int(note.name))
    return running


def end(folder: Path) -> int:
    """End all processes written down in `folder` at once, since nothing that they do is kept; how many there were.

    Those that one of them still starts meanwhile are ended as well.
    """
    ended: set[int] = set()
    limit = time.monotonic() + _PATIENCE_SECONDS
    while (pids := recorded(folder)) and time.monotonic() < limit:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended.update(pids)
        time.sleep(0.01)
    return len(ended)


def family(pid: int) -> list[int]:
    """A process and all that it has started, directly or not, in any session; parents come first."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    members = [pid]
    for member in members:
        members += children.get(member, [])
    return members


def _parents() -> Iterator[tuple[int, int]]:
    """Every process with its parent."""
    if Path("/proc/self/stat").exists():
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                yield int(stat.parent.name), int(stat.read_text().rpartition(")")[2].split()[1])
        return
    done = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        child, parent = line.split()
        yield int(child), int(parent)


def recording(folder: Path, program: Path) -> str:
    """A shell script that writes itself down in `folder` as `record` does and becomes `program`."""
    # Of many short runs of Terraform, `sed` and `cut` would take as long as some of them do.
    return f"""#!/bin/sh
field() {{ shift "$1"; printf %s "$1"; }}
if [ -r /proc/self/stat ]; then
    read -r stat < /proc/$$/stat
    field 20 ${{stat##*) }} > {shlex.quote(str(folder))}/$$
else
    printf %s "$(ps -o lstart= -p $$ | sed 's/^ *//; s/ *$//')" > {shlex.quote(str(folder))}/$$
fi
exec {shlex.quote(str(program))} "$@"
"""
