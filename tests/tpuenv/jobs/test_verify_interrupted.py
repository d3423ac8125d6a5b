"""`tpuenv verify` leaves nothing, or names it: interrupts, refused requests, and a cluster that does not answer."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from rehearsal.http_server import Request, Response, json_response
from rehearsal.serve import answers
from tests.tpuenv.jobs.conftest import Ground
from tests.tpuenv.jobs.hello_program import HelloProgram
from tests.tpuenv.jobs.verify_command import TEAM, Capture, at_first_read, created, jobsets, only, verified
from tpuenv.jobs.submission import create
from tpuenv.main import main

pytestmark = pytest.mark.usefixtures("at_once", "signal_handlers")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_deletes_the_job(built: Ground, capsys: Capture, number: int) -> None:
    at_first_read(built, lambda: os.kill(os.getpid(), number))
    assert main(["verify"]) == 130
    assert jobsets(built) == []
    assert "interrupted" in capsys.readouterr().err


def refuse(ground: Ground, method: str) -> None:
    def answer(request: Request) -> Response | None:
        if request.method != method:
            return None
        body = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": 'User "ada" cannot do that'}
        return json_response(body, status=403)

    ground.before.append(answer)


def test_a_job_that_cannot_be_deleted_is_named(built: Ground, capsys: Capture) -> None:
    program = HelloProgram(ground=built)
    refuse(built, "DELETE")
    code, rows = verified(capsys)
    assert code == 1
    row = only(rows, "cleaned up")
    assert row["measured"].startswith("permission: ada may not delete JobSet tpu-training/verify-")
    assert row["fix"] == f"`tpuenv cancel {program.jobs[0]['metadata']['name']} --team {TEAM}`"


def test_an_interrupt_that_cannot_delete_the_job_names_it(built: Ground, capsys: Capture) -> None:
    refuse(built, "DELETE")
    at_first_read(built, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert main(["verify"]) == 130
    (job,) = jobsets(built)
    assert f"tpuenv cancel {job['metadata']['name']} --team {TEAM}" in capsys.readouterr().err


def test_an_interrupt_just_after_the_job_is_created_deletes_it(
    built: Ground, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        create(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr("tpuenv.verification.attempt.create", interrupted)
    assert main(["verify"]) == 130
    assert jobsets(built) == []


def test_an_interrupt_while_a_job_is_created_ends_all_and_names_what_may_remain(
    three_teams: Ground, capsys: Capture
) -> None:
    refuse(three_teams, "DELETE")
    serve = answers(three_teams.fake.cloud)
    has_left = threading.Event()

    def interrupt(request: Request) -> Response | None:
        if request.method == "GET" and "/jobsets/verify-" in request.path:
            has_left.set()
        if request.method != "POST":
            return None
        response = serve(request)
        os.kill(os.getpid(), signal.SIGINT)
        has_left.wait(30)
        return response

    three_teams.before.append(interrupt)
    assert main(["verify", "--auto-approve"]) == 130
    (job,) = jobsets(three_teams)
    place = job["metadata"]
    assert f"tpuenv cancel {place['name']} --team {place['namespace']}" in capsys.readouterr().err
    assert created(three_teams) == 1


def test_what_may_remain_of_a_job_whose_creation_failed_is_in_its_row(built: Ground, capsys: Capture) -> None:
    refuse(built, "DELETE")
    serve = answers(built.fake.cloud)

    def lose(request: Request) -> None:
        if request.method == "POST":
            serve(request)
            raise ConnectionError("lost")

    built.before.append(lose)
    code, (row,) = verified(capsys)
    (job,) = jobsets(built)
    assert code == 1
    assert f"tpuenv cancel {job['metadata']['name']} --team {TEAM}" in row["measured"]


def test_a_job_that_cannot_be_created_fails_its_row_alone(three_teams: Ground, capsys: Capture) -> None:
    HelloProgram(ground=three_teams)

    def refuse_one(request: Request) -> Response | None:
        if request.method != "POST" or "/namespaces/serving/" not in request.path:
            return None
        return json_response({"kind": "Status", "message": "webhook: no"}, status=500)

    three_teams.before.append(refuse_one)
    code, rows = verified(capsys, "--group", "serve")
    assert code == 1
    assert {row["team"] for row in rows if row["verdict"] == "failed"} == {"serving"}
    assert {row["verdict"] for row in rows if row["team"] == "research"} == {"ok"}


def test_a_job_that_somebody_deletes_failed(built: Ground, capsys: Capture) -> None:
    def delete() -> None:
        (job,) = jobsets(built)
        resource = built.api.resource("jobset.x-k8s.io/v1alpha2", "JobSet")
        built.api.delete(resource, TEAM, job["metadata"]["name"])

    at_first_read(built, delete)
    code, rows = verified(capsys)
    assert (code, len(rows)) == (1, 1)
    assert rows[0]["measured"].endswith("was deleted")


def test_a_cluster_that_does_not_answer_for_a_while_is_asked_again(built: Ground, capsys: Capture) -> None:
    HelloProgram(ground=built)
    left = [json_response({}, status=503)] * 20

    def busy(request: Request) -> Response | None:
        return left.pop() if left and "/jobsets/verify-" in request.path else None

    built.before.append(busy)
    assert verified(capsys)[0] == 0
    assert left == []


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_any_more_fails_and_names_the_job(built: Ground, capsys: Capture) -> None:
    def busy(request: Request) -> Response | None:
        return json_response({}, status=503) if "/jobsets/verify-" in request.path else None

    built.before.append(busy)
    code, rows = verified(capsys, "--timeout", "1s")
    assert code == 1
    assert only(rows, "start")["measured"].startswith("network: no good answer from cluster tpu-cluster")
    assert only(rows, "cleaned up")["fix"].startswith("`tpuenv cancel verify-")
