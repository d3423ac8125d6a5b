"""The state as JSON: its form is stable, and docs/status.md describes it."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from tpuenv.jobs.job import Job
from tpuenv.jobs.table import why
from tpuenv.status.queues import Queue
from tpuenv.status.read_status import Status
from tpuenv.status.slices import Slices

VERSION = 1  # goes up when a field is renamed, removed, or means something else


def document(status: Status) -> dict[str, Any]:
    """What `tpuenv status --json` prints. null is what this person may not read."""
    return {
        "version": VERSION,
        "time": _time(status.time),
        "slices": [_slices(slices) for slices in status.slices],
        "queues": None if status.queues is None else [_queue(queue) for queue in status.queues],
        "jobs": [_job(job, status.time) for job in status.jobs],
        "notes": list(status.notes),
        "links": dict(status.links),
    }


def _slices(slices: Slices) -> dict[str, Any]:
    return {
        "group": slices.group,
        "type": slices.tpu_type,
        "slices": slices.slices,
        "used": slices.used,
        "free": slices.free,
        "broken": slices.broken,
        "stuck_chips": slices.stuck_chips,
        "partial_chips": slices.partial_chips,
        "problems": None if slices.problems is None else [dataclasses.asdict(item) for item in slices.problems],
    }


def _queue(queue: Queue) -> dict[str, Any]:
    return {
        "team": queue.team,
        "pending": queue.pending,
        "admitted": queue.admitted,
        "stopped": queue.stopped,
        "groups": [
            {"group": item.group, "quota": item.own, "used": item.used, "borrowed": item.borrowed}
            for item in queue.quotas
        ],
    }


def _job(job: Job, now: datetime) -> dict[str, Any]:
    return {
        "name": job.name,
        "team": job.team,
        "kind": job.kind,
        "state": job.state.value,
        "position": job.position or None,
        "group": job.group or None,
        "slices": job.slices,
        "hosts": job.hosts,
        "hosts_ready": job.running,
        "restarts": job.restarts,
        "stuck_seconds": int(job.stuck_for.total_seconds()) if job.stuck_for else None,
        "created": _time(job.created) if job.created else None,
        "age_seconds": int((now - job.created).total_seconds()) if job.created else None,
        "why": next(iter(why(job)), ""),
    }


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
