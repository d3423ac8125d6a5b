"""What hello-tpu finds out about buckets, as a pod of a team."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from manifests.recipes import FOLDER
from rehearsal.http_server import Request, Response
from tests.google_of_a_pod import Google

WORKS = {"write": "ok", "read": "ok", "delete": "ok"}


@pytest.fixture
def google(tmp_path: Path) -> Iterator[Google]:
    made = Google(tmp_path)
    yield made
    made.close()


@pytest.fixture
def program(google: Google, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, as it is loaded in a pod of the fake Google."""
    for name, value in google.variables.items():
        monkeypatch.setenv(name, value)
    module = load(monkeypatch)
    monkeypatch.setattr(module, "_SECONDS_BETWEEN", 0.0)
    return module


def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("bucket_access", FOLDER / "hello-tpu" / "bucket_access.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bucket_access", module)  # where its dataclasses are looked up
    spec.loader.exec_module(module)
    return module


def test_a_team_uses_its_own_bucket_and_no_other(google: Google, program: Any) -> None:
    report, problems = program.check("own", ["other"], run="hello-1")
    assert report == {"own_bucket": WORKS, "other_buckets": {"other": "refused"}}
    assert problems == []
    assert google.objects() == []
    assert google.asked_for_tokens[0].headers["metadata-flavor"] == "Google", "the server refuses requests without it"


def test_a_bucket_without_its_grant_is_a_problem(google: Google, program: Any) -> None:
    report, problems = program.check("other", [], run="hello-1")
    assert report == {"own_bucket": {"write": "refused"}, "other_buckets": {}}
    assert problems == ["bucket other: write an object: refused"]


def test_a_role_that_cannot_delete_is_a_problem(google: Google, program: Any) -> None:
    google.grant("other", of="create get")
    report, problems = program.check("other", [], run="hello-1")
    assert report["own_bucket"] == {"write": "ok", "read": "ok", "delete": "refused"}
    assert problems == ["bucket other: delete an object: refused"]


def test_other_bytes_than_were_written_are_a_problem(google: Google, program: Any) -> None:
    google.before.append(lambda request: Response(body=b"x") if request.query.get("alt") == "media" else None)
    report, problems = program.check("own", [], run="hello-1")
    assert report["own_bucket"] == {**WORKS, "read": "other bytes than were written"}
    assert problems == ["bucket own: read an object: other bytes than were written"]


@pytest.mark.parametrize(
    ("verbs", "said"),
    [
        ("list create delete", "its objects can be written"),
        ("list get", "its objects can be listed"),
        ("create", "its objects can be written, and object tpuenv-verify/"),
    ],
)
def test_another_teams_bucket_that_is_open_is_a_problem(google: Google, program: Any, verbs: str, said: str) -> None:
    google.grant("other", of=verbs)
    report, problems = program.check("own", ["other"], run="hello-1")
    assert report["other_buckets"]["other"].startswith(said)
    assert len(problems) == 1
    assert problems[0].startswith(f"bucket other: {said}")
    left = google.objects()
    assert bool(left) == ("stays" in problems[0]), "what cannot be deleted is named"
    assert all(name in problems[0] for name in left)


def test_a_bucket_that_does_not_exist_is_not_one_that_refuses(google: Google, program: Any) -> None:
    _, problems = program.check("own", ["none"], run="hello-1")
    assert problems == ["bucket none: there is no such bucket or object, and must be refused"]


def test_a_pod_without_an_identity_is_a_problem(google: Google, program: Any) -> None:
    google.token = Response(status=404)
    report, problems = program.check("own", ["other"], run="hello-1")
    assert report == {"own_bucket": {}, "other_buckets": {}}
    assert problems[0].startswith("bucket own: GKE's metadata server gives the pod no access token")
    assert len(google.asked_for_tokens) > 1, "it is not ready when the pod starts"


def test_transient_faults_are_no_problem(google: Google, program: Any) -> None:
    faults = iter([Response(status=503), None, Response(status=429)])
    google.before.append(lambda _: next(faults, None))
    assert program.check("own", ["other"], run="hello-1")[1] == []


@pytest.mark.parametrize(("bucket", "method"), [("own", "GET"), ("other", "GET"), ("other", "POST")])
@pytest.mark.parametrize("fault", ["closed", "cut", "cut-error"])
def test_what_a_bucket_does_not_answer_is_reported_of_that_bucket_alone(
    google: Google, program: Any, bucket: str, method: str, fault: str
) -> None:
    """No answer, and answers and errors whose bodies are shorter than their headers say."""

    def break_(request: Request) -> Response | None:
        if request.method != method or f"/b/{bucket}/" not in request.path:
            return None
        if fault == "closed":
            raise ConnectionError
        return Response(status=200 if fault == "cut" else 403, body=b"x", headers={"Content-Length": "9"})

    google.before.append(break_)
    report, problems = program.check("own", ["other"], run="hello-1")
    (problem,) = problems
    assert problem.startswith(f"bucket {bucket}: ")
    assert "does not answer" in problem
    if bucket == "other":
        assert report["own_bucket"] == WORKS
    else:
        assert report["other_buckets"] == {"other": "refused"}
    assert google.objects() == []


def test_sigterm_while_an_object_is_deleted_waits_until_it_is(google: Google, program: Any) -> None:
    faults = iter([Response(status=503)])

    def end(request: Request) -> Response | None:
        if request.method != "DELETE" or (fault := next(faults, None)) is None:
            return None
        os.kill(os.getpid(), signal.SIGTERM)
        return fault

    google.before.append(end)
    with pytest.raises(SystemExit) as ended:
        program.check("own", ["other"], run="hello-1")
    assert ended.value.code == 128 + signal.SIGTERM
    assert google.objects() == []


def test_a_deletion_takes_less_time_than_a_pod_has_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """To connect and to read takes the timeout each."""
    program = load(monkeypatch)
    tries = program._DELETE_TRIES
    assert tries * 2 * program._DELETE_TIMEOUT_SECONDS + (tries - 1) * program._SECONDS_BETWEEN < 30


def test_an_object_is_deleted_where_the_pod_is_deleted_meanwhile(google: Google, program: Any) -> None:
    """With SIGTERM, as Kubernetes does it."""

    def end(request: Request) -> None:
        if request.query.get("alt") == "media":
            assert google.objects(), "it is written"
            os.kill(os.getpid(), signal.SIGTERM)

    google.before.append(end)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        program.check("own", ["other"], run="hello-1")
    assert ended.value.code == 128 + signal.SIGTERM
    assert google.objects() == []
    assert signal.getsignal(signal.SIGTERM) is before
