"""The lock over an environment: Google's own client, against the fake Cloud Storage."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rehearsal import http_server
from rehearsal.cloud import Cloud
from rehearsal.google.cloud_storage_api import BUCKET
from rehearsal.google.permissions import token_of
from rehearsal.serve import answers
from tests.loading import loaded
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients, Patience, connect
from tpuenv.state.locks import Locked, hold_lock, lock_name, read_lock, release_lock, run_info

NAMES = loaded().names
STATES = NAMES.state_bucket


@dataclass(frozen=True, kw_only=True)
class Place:
    cloud: Cloud
    clients: Clients
    said: list[str]

    @property
    def lock(self) -> dict[str, str] | None:
        blobs = self.cloud.blobs(STATES, name="tpu/deploy.lock")
        return json.loads(blobs[0].content) if blobs else None

    def put(self, content: bytes) -> None:
        self.cloud.put_blob(STATES, "tpu/deploy.lock", content, {}, keep_old=False)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    cloud, said = Cloud(tmp_path / "cloud.db"), list[str]()
    cloud.put(BUCKET, STATES, {"name": STATES, "project": "my-project", "location": "us-east5"})
    server, address = http_server.start(answers(cloud))
    monkeypatch.setenv("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", f"{address}/storage/v1/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(""))
    patience = Patience(poll=0.01, line=0.02)
    clients = dataclasses.replace(connect("my-project"), say=said.append, patience=patience)
    yield Place(cloud=cloud, clients=clients, said=said)
    server.shutdown()
    server.server_close()
    cloud.close()


def test_it_is_held_inside_with_the_fields_of_terraforms_own_and_gone_after(place: Place) -> None:
    with hold_lock(place.clients, NAMES, operation="apply", info="commit c", wait=0):
        lock = place.lock
        assert lock is not None
        assert {"ID", "Operation", "Info", "Who", "Created", "Path"} <= lock.keys()
        assert (lock["Operation"], lock["Info"]) == ("apply", "commit c")
        assert lock["Path"] == f"gs://{STATES}/tpu/deploy.lock"
    assert place.lock is None


def test_a_run_is_identified_by_its_commit_and_in_a_build_by_the_builds_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUILD_ID", raising=False)
    assert run_info("c") == "commit c"
    monkeypatch.setenv("BUILD_ID", "b-1")
    assert run_info("c") == "commit c, build b-1"


@pytest.mark.parametrize("leaving", [SystemExit(143), KeyboardInterrupt(), Failed("no")])
def test_it_is_gone_however_the_run_ends(place: Place, leaving: BaseException) -> None:
    with pytest.raises(type(leaving)), hold_lock(place.clients, NAMES, operation="apply", info="", wait=0):
        raise leaving
    assert place.lock is None


@pytest.mark.slow
def test_a_second_run_waits_saying_for_whom_and_goes_no_further_than_its_limit(place: Place) -> None:
    with (
        hold_lock(place.clients, NAMES, operation="apply", info="commit c", wait=0),
        pytest.raises(Locked, match=r"held by .*@.*, apply, since .*; commit c\. Waited"),
        hold_lock(place.clients, NAMES, operation="destroy", info="", wait=1),
    ):
        raise AssertionError("two at a time")
    assert len(place.said) > 1
    assert "is held by" in place.said[0]
    assert place.lock is None


def test_a_lock_that_somebody_else_took_meanwhile_is_left_alone(place: Place) -> None:
    other = {"ID": "other", "Who": "somebody"}
    with hold_lock(place.clients, NAMES, operation="apply", info="", wait=0):
        place.put(json.dumps(other).encode())
    assert place.lock == other


def test_only_that_lock_is_released_and_no_later_one(place: Place) -> None:
    place.put(b'{"ID": "first"}')
    first = read_lock(place.clients, NAMES)
    assert first is not None
    place.put(b'{"ID": "second"}')
    assert not release_lock(place.clients, NAMES, first)
    assert place.lock == {"ID": "second"}
    second = read_lock(place.clients, NAMES)
    assert second is not None
    assert release_lock(place.clients, NAMES, second)
    assert place.lock is None
    assert not release_lock(place.clients, NAMES, second)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"{}", b'{"Who": null}'])
def test_a_lock_that_cannot_be_read_is_a_lock(place: Place, content: bytes) -> None:
    place.put(content)
    with (
        pytest.raises(Locked, match=r"held by somebody, an unknown operation, since an unknown time"),
        hold_lock(place.clients, NAMES, operation="apply", info="", wait=0),
    ):
        pass


def test_a_state_bucket_that_is_gone_is_reported(place: Place) -> None:
    place.cloud.delete(BUCKET, STATES)
    with (
        pytest.raises(Failed, match=rf"No state bucket: gs://{STATES}"),
        hold_lock(place.clients, NAMES, operation="apply", info="", wait=0),
    ):
        pass


def test_another_environment_of_the_project_is_not_waited_for(place: Place) -> None:
    other = loaded(RESOURCE_PREFIX="two", TF_STATE_BUCKET=STATES).names
    with (
        hold_lock(place.clients, NAMES, operation="apply", info="", wait=0),
        hold_lock(place.clients, other, operation="apply", info="", wait=0),
    ):
        assert lock_name(other) == "two/deploy.lock"
