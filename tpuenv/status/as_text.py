"""The state as three tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tpuenv.jobs.diagnosis.diagnose import obstacles
from tpuenv.jobs.job import Job, span
from tpuenv.jobs.links import link_lines
from tpuenv.jobs.table import age
from tpuenv.status.queues import Queue
from tpuenv.status.read_status import Status
from tpuenv.status.slices import Slices
from tpuenv.terminal.table import aligned
from vocabulary.printable import counted, printable, shortened

_UNKNOWN = "-"
_LONGEST_WHY = 160  # characters; `tpuenv why` has the whole

Row = tuple[Sequence[str], Iterable[str]]  # the cells, and the lines below them


def tables(status: Status) -> Iterator[str]:
    """The lines: slices, queues, jobs that have not ended, notes, and links."""
    yield from _table(("SLICES OF", "TYPE", "ALL", "USED", "FREE", "BROKEN"), map(_slices, status.slices))
    if status.queues is not None:
        yield ""
        rows = [row for queue in status.queues for row in _queue(queue)]
        yield from _table(("QUEUE OF", "PENDING", "ADMITTED", "GROUP", "QUOTA", "USED", "BORROWED"), rows)
    yield ""
    going = [job for job in status.jobs if not job.state.is_end]
    if going:
        headings = ("JOB", "TEAM", "STATE", "GROUP", "SLICES", "HOSTS", "RESTARTS", "AGE")
        yield from _table(headings, [_job(job, status) for job in going])
    else:
        yield "No job waits or runs."
    if ended := len(status.jobs) - len(going):
        yield f"{counted(ended, 'job')} ended: see `tpuenv jobs`"
    yield from (printable(f"note: {note}") for note in status.notes)
    if status.links:
        yield ""
        yield from link_lines(status.links)


def _slices(slices: Slices) -> Row:
    numbers = [_number(item) for item in (slices.slices, slices.used, slices.free, slices.broken)]
    below = [f"{problem.slice}: {problem.why}" for problem in slices.problems or ()]
    if slices.stuck:
        held = counted(slices.stuck_chips, "chip")
        below.append(f"{held} held by jobs without pods ({', '.join(slices.stuck)}): `tpuenv requeue`, or cancel, them")
    return (slices.group, slices.tpu_type, *numbers), below


def _queue(queue: Queue) -> Iterator[Row]:
    """A line for each pool group; what is said of the whole queue is in the first."""
    first = (queue.team, str(queue.pending), str(queue.admitted))
    for number, quota in enumerate(queue.quotas):
        cells = (quota.group, *(_number(item) for item in (quota.own, quota.used, quota.borrowed)))
        below = [queue.stopped] if queue.stopped and number == len(queue.quotas) - 1 else []
        yield (*(first if number == 0 else ("", "", "")), *cells), below


def _job(job: Job, status: Status) -> Row:
    hosts = f"{job.running}/{job.hosts}" if job.hosts else _UNKNOWN
    state = f"{job.state.value}, {job.position} in its queue" if job.position else str(job.state.value)
    if job.stuck_for:
        state = f"stuck for {span(job.stuck_for)}"
    cells = (
        job.name,
        job.team,
        state,
        job.group or _UNKNOWN,
        str(job.slices) if job.slices else _UNKNOWN,
        hosts,
        str(job.restarts),
        age(job, status.time),
    )
    return cells, [shortened(cause.cause, longest=_LONGEST_WHY) for cause in obstacles(job)[:1]]


def _number(number: float | None) -> str:
    return _UNKNOWN if number is None else f"{number:g}"


def _table(headings: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    known = [(headings, ()), *rows]
    for line, (_, below) in zip(aligned([cells for cells, _ in known]), known, strict=True):
        yield line
        yield from (f"  {printable(text)}" for text in below)
