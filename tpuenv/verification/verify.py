"""Runs hello-tpu for every team: groups at the same time, in each of them one run after the other. Nothing stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from manifests.render import Run
from tpuenv.failure import Failed, Interrupted
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.errors import Unreachable
from tpuenv.terminal.progress import Progress
from tpuenv.verification.attempt import Attempt
from tpuenv.verification.rows import Row, Verdict, counts, row

# How many polls what was deleted may take to go: pods have 30 seconds to end.
_GOING = 30


def verify(
    cluster: Cluster,
    runs: Sequence[Run],
    *,
    seconds: float,
    timeout: str,
    progress: Progress,
    clock: Callable[[], float] = time.monotonic,
) -> list[Row]:
    """The rows of all runs, each of which has so many seconds, written as `timeout`.

    However it ends, the jobs are deleted. Raises Interrupted where it is interrupted and they cannot be.
    """
    waiting: dict[str, list[Run]] = {}
    used: set[str] = set()  # groups on which a slice may still count as used by the run before
    for run in runs:
        waiting.setdefault(run.group.name if run.group else "", []).append(run)
    active: dict[str, Attempt] = {}
    rows: list[Row] = []
    try:
        while waiting or active:
            for group in [name for name in waiting if name not in active]:
                run = waiting[group].pop(0)
                active[group] = Attempt(
                    cluster=cluster, run=run, seconds=seconds, timeout=timeout, clock=clock, settles=group in used
                )
                waiting = {name: left for name, left in waiting.items() if left}
            before = len(rows)
            for group, attempt in list(active.items()):
                found = _step(attempt)
                if found is not None:
                    rows += [*found, *_cleaned_up(attempt)]
                    used |= {group} if attempt.job else set()
                    del active[group]
                    progress.line(f"  {attempt.place}: {_words(found)}")
            progress.doing("verifying", "; ".join(attempt.words for attempt in active.values()))
            if active and len(rows) == before:
                time.sleep(cluster.patience.poll)
    except BaseException as error:
        _delete(list(active.values()), error)
        raise
    return rows


def _words(rows: Sequence[Row]) -> str:
    """ "4 ok, 2 simulated" """
    return ", ".join(f"{number} {verdict}" for verdict, number in counts(rows).items() if number)


def _step(attempt: Attempt) -> list[Row] | None:
    """What fails in one run fails no other, and a cluster that does not answer may do so again in time."""
    try:
        return attempt.step()
    except Interrupted:
        raise
    except Failed as failed:
        if isinstance(failed, Unreachable) and attempt.job and attempt.in_time:
            return None
        return [row(attempt.run, "start", "a job", _one_line(failed), Verdict.FAILED, "correct that")]


def _one_line(failed: Failed) -> str:
    return " ".join(str(failed).split())


def _cleaned_up(attempt: Attempt) -> list[Row]:
    """Deletes the job, and waits until nothing of it is there; a row if something stays."""
    try:
        attempt.delete()
        for _ in range(_GOING):
            remains = attempt.remains()
            if not remains:
                return []
            time.sleep(attempt.cluster.patience.poll)
        measured = f"still there: {', '.join(remains)}"
    except Failed as failed:
        measured = _one_line(failed)
    return [row(attempt.run, "cleaned up", "nothing stays", measured, Verdict.FAILED, f"`{attempt.cancel}`")]


def _delete(attempts: Sequence[Attempt], error: BaseException) -> None:
    """Of a verification that was interrupted. Raises Failed, which names what may be there still."""
    remain = []
    for attempt in attempts:
        try:
            attempt.delete()
        except (Failed, KeyboardInterrupt):
            remain.append(attempt)
    if remain:
        commands = "".join(f"\n  {item.cancel}" for item in remain)
        left = "Jobs that could not be deleted may still be there; to delete them:"
        is_interrupt = isinstance(error, KeyboardInterrupt | Interrupted)
        raise (Interrupted if is_interrupt else Failed)(f"{str(error) or 'interrupted'}\n{left}{commands}") from error
