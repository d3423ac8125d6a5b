"""The jobs as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from tpuenv.jobs.diagnosis.diagnose import obstacles
from tpuenv.jobs.job import Job, State, span
from tpuenv.terminal.table import aligned
from vocabulary.keys import RECIPE_LABEL
from vocabulary.printable import printable

_HEADINGS = ("NAME", "TEAM", "RECIPE", "STATE", "QUEUE", "SLICES", "AGE")
_NONE = "-"


def table(jobs: Iterable[Job], now: datetime) -> Iterator[str]:
    """A line a job, and below it why it does not run. QUEUE is its place in its team's queue."""
    known = list(jobs)
    headings, *lines = aligned([_HEADINGS, *(_row(job, now) for job in known)])
    yield headings
    for job, line in zip(known, lines, strict=True):
        yield line
        yield from (f"  {printable(line)}" for line in why(job))


def why(job: Job) -> list[str]:
    """Why it does not run, or how it failed."""
    if job.state.is_end:
        return [job.end_message] if job.state == State.FAILED and job.end_message else []
    return [str(cause) for cause in obstacles(job)]


def age(job: Job, now: datetime) -> str:
    """How long ago it was created."""
    return span(now - job.created) if job.created else _NONE


def _row(job: Job, now: datetime) -> tuple[str, ...]:
    labels = (job.body.get("metadata") or {}).get("labels") or {}
    slices = f"{job.slices}" + (f" of {job.group}" if job.group else "") if job.slices else _NONE
    queue = str(job.position) if job.position else _NONE
    recipe = str(labels.get(RECIPE_LABEL) or job.kind)
    return job.name, job.team, recipe, job.words, queue, slices, age(job, now)
