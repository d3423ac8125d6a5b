"""`tpuenv verify` as tests call it, and what it has created."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.http_server import Request
from tests.tpuenv.jobs.conftest import Ground
from tpuenv.main import main

TEAM = "tpu-training"
Capture = pytest.CaptureFixture[str]
Row = dict[str, Any]


def verified(capsys: Capture, *words: str) -> tuple[int, list[Row]]:
    """The exit code, and the rows of the runs."""
    code, rows = _verified(capsys, *words)
    return code, [row for row in rows if row["group"]]


def tried(capsys: Capture, *words: str) -> tuple[int, list[Row]]:
    """The exit code, and the rows of what is tried once for a team."""
    code, rows = _verified(capsys, *words)
    return code, [row for row in rows if not row["group"]]


def _verified(capsys: Capture, *words: str) -> tuple[int, list[Row]]:
    code = main(["verify", "--json", *words])
    return code, json.loads(capsys.readouterr().out)["rows"]


def only(rows: list[Row], what: str) -> Row:
    (row,) = (item for item in rows if item["what"] == what)
    return row


def jobsets(ground: Ground) -> list[Row]:
    return ground.api.all(ground.api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"))


def at_first_read(ground: Ground, step: Callable[[], object]) -> None:
    """Calls it once, before the first read of the job."""
    steps = [step]

    def call(request: Request) -> None:
        if request.method == "GET" and "/jobsets/verify-" in request.path and steps:
            steps.pop()()

    ground.before.append(call)


def created(ground: Ground) -> int:
    return sum(request.startswith("POST") and request.endswith("/jobsets") for request in ground.requests)
