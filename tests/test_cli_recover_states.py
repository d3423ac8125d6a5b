"""Locks and states in the bucket: seen, released, mended, put back; with Google's client, in a played Cloud Storage."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import environment
from cli import locks, main, states
from cli.cloud import Clients, connect
from cli.dialog import Dialog
from cli.failure import Failed
from cli.import_ids import Planned
from cli.recovery_states import mend
from cli.terraform import Stack
from cli.unowned import Object, by_name
from environment.names import Names
from rehearsal import web
from rehearsal.cloud import Blob, Cloud
from rehearsal.gcs import BUCKET
from rehearsal.rules.project import make_project
from rehearsal.serve import answers

STATES = "some-project-tpu-tf-state"
BOARD = "google_vertex_ai_tensorboard"
BOARDS = "projects/some-project/locations/us-central1/tensorboards"


def state(serial: int, *names: str, lineage: str = "a") -> bytes:
    resources = [
        {"mode": "managed", "type": "t", "name": name, "instances": [{"attributes": {}}]} for name in names
    ] + [{"mode": "data", "type": "t", "name": "read", "instances": [{}]}]
    return json.dumps({"version": 4, "serial": serial, "lineage": lineage, "resources": resources}).encode()


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A played project with its state bucket, a checkout's folder, and what was said."""

    cloud: Cloud
    clients: Clients
    names: Names
    folder: Path
    asked: list[str] = field(default_factory=list)

    def write(self, name: str, content: bytes) -> Blob:
        return self.cloud.put_blob(STATES, f"tpu/{name}", content, {}, keep_old=True)

    def states(self, *contents: bytes) -> list[int]:
        """Of stack `queues`, oldest first; their generations."""
        return [self.write("queues/default.tfstate", content).generation for content in contents]

    def lock(self, who: str = "ada@far-away", stack: str = "queues") -> Blob:
        fields = {"ID": "1", "Who": who, "Operation": "OperationTypeApply", "Created": "2020-01-01T00:00:00.123456789Z"}
        return self.write(f"{stack}/default.tflock", json.dumps(fields).encode())

    @property
    def live(self) -> states.State:
        (blob,) = self.cloud.blobs(STATES, name="tpu/queues/default.tfstate")
        return states.parse(blob.content)

    @property
    def kept(self) -> int:
        return len(self.cloud.blobs(STATES, name="tpu/queues/default.tfstate", generations=True))

    @property
    def locked(self) -> bool:
        return bool(self.cloud.blobs(STATES, name="tpu/queues/default.tflock"))

    def mend(self, *, yes: bool = True) -> bool:
        def answer(question: str) -> bool:
            self.asked.append(question)
            return yes

        stack = Stack(name="queues", folder=self.folder)
        return mend(self.clients, self.names, stack, Dialog(answer=answer, careful=True), locked=False)


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    cloud = Cloud(tmp_path / "cloud.db")
    make_project(cloud, "some-project", number="123456789012", services=[])
    cloud.put(BUCKET, STATES, {"name": STATES, "project": "some-project", "versioning": [{"enabled": True}]})
    server, address = web.start(answers(cloud))
    monkeypatch.setenv("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", f"{address}/storage/v1/")
    monkeypatch.setenv("GOOGLE_VERTEX_AI_CUSTOM_ENDPOINT", f"{address}/v1/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "rehearsal")
    monkeypatch.setenv("TPUENV_FOLDER", str(tmp_path))
    (tmp_path / "vars.env").write_text("PROJECT_ID=some-project\n")
    names = environment.load(tmp_path / "vars.env", {}).names
    yield Ground(cloud=cloud, clients=connect("some-project"), names=names, folder=tmp_path)
    server.shutdown()
    server.server_close()
    cloud.close()


def test_versions_are_listed_newest_first_with_what_they_hold(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = ground.states(state(1, "x"), b'{"version": 4, "ser', state(3, "x", "y"))
    assert main(["state", "versions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "queues:"
    assert [int(line.split()[0]) for line in lines[2:]] == [third, second, first]
    assert lines[2].split()[3:] == ["3", "2", "a", "live"]
    assert "damaged: it is not JSON, or not all of it" in lines[3]
    assert lines[4].split()[3:] == ["1", "1", "a"]


def test_an_old_version_is_put_back_with_a_higher_serial_and_the_present_one_is_kept(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_ = ground.states(state(1, "x", "z"), state(7, "x", "y"))
    assert main(["state", "restore", "queues", str(first), "--yes"]) == 0
    said = capsys.readouterr().out
    assert "  - t.y would be in no state\n  + t.z\n" in said
    assert "Restored as serial 8" in said
    assert ground.live == states.State(lineage="a", serial=8, addresses=("t.x", "t.z"))
    assert ground.kept == 3
    assert not ground.locked


def test_a_version_is_not_put_back_without_a_yes(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    first, _ = ground.states(state(1, "x"), state(2, "x", "y"))
    assert main(["state", "restore", "queues", str(first)]) == 1
    assert "there is no terminal to ask at" in capsys.readouterr().err
    assert ground.live.serial == 2


def test_a_held_lock_is_honoured(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    first, _ = ground.states(state(1, "x"), state(2, "x", "y"))
    ground.lock()
    assert main(["state", "restore", "queues", str(first), "--yes"]) == 1
    assert "Locked: the state of queues is held by ada@far-away, apply, since 2020" in capsys.readouterr().err
    assert ground.live.serial == 2
    assert ground.locked


def test_a_state_of_another_lineage_needs_to_be_meant(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    first, _ = ground.states(state(9, "x", lineage="b"), state(2, "y"))
    assert main(["state", "restore", "queues", str(first), "--yes"]) == 1
    assert "is of another lineage" in capsys.readouterr().err
    assert main(["state", "restore", "queues", str(first), "--yes", "--another-lineage"]) == 0
    assert (ground.live.lineage, ground.live.serial) == ("b", 10)


@pytest.mark.parametrize(("generation", "words"), [(7, "no version 7 is kept"), (0, "is no whole state")])
def test_a_version_that_is_not_there_or_damaged_is_not_put_back(
    ground: Ground, capsys: pytest.CaptureFixture[str], generation: int, words: str
) -> None:
    damaged, _ = ground.states(b"{", state(2, "x"))
    assert main(["state", "restore", "queues", str(generation or damaged), "--yes"]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("damage", [b"", b'{"version": 4, "ser', b'{"version": 3}', b'{"version": 4, "serial": 1}'])
def test_a_damaged_state_gives_way_to_the_last_whole_version(ground: Ground, damage: bytes) -> None:
    ground.states(state(1, "x"), state(2, "x", "y"), b"{", damage)
    assert ground.mend()
    assert ground.live == states.State(lineage="a", serial=3, addresses=("t.x", "t.y"))
    assert len(ground.asked) == 1
    assert ground.kept == 5


def test_without_a_yes_a_damaged_state_stays(ground: Ground) -> None:
    ground.states(state(1, "x"), b"{")
    assert not ground.mend(yes=False)
    assert ground.kept == 2


def test_a_damaged_state_of_which_nothing_whole_is_kept_is_moved_away(ground: Ground) -> None:
    ground.states(b"{")
    assert ground.mend()
    assert ground.cloud.blobs(STATES, name="tpu/queues/default.tfstate") == []
    assert ground.kept == 1


def test_a_state_that_was_deleted_comes_back(ground: Ground) -> None:
    ground.states(state(4, "x"))
    ground.cloud.delete_blob(STATES, "tpu/queues/default.tfstate", keep_old=True)
    assert ground.mend()
    assert ground.live.addresses == ("t.x",)


def test_an_empty_state_that_terraform_began_anew_gives_way_to_the_one_before(ground: Ground) -> None:
    ground.states(state(4, "x"), state(1, lineage="b"))
    assert ground.mend()
    assert ground.live == states.State(lineage="a", serial=5, addresses=("t.x",))


@pytest.mark.parametrize(
    "contents",
    [
        [],
        [state(1, "x"), state(2)],  # after a destroy
        [state(1, "x"), state(1, "y", lineage="b")],  # begun anew, and used
        [state(1, lineage="b"), state(1, "x")],
    ],
)
def test_a_state_with_nothing_wrong_is_left_alone(ground: Ground, contents: list[bytes]) -> None:
    ground.states(*contents)
    assert ground.mend()
    assert ground.asked == []
    assert ground.kept == len(contents)


def test_what_terraform_could_not_write_is_brought_in_once(ground: Ground) -> None:
    left = ground.folder / "errored.tfstate"
    ground.states(state(2, "x"))
    left.write_bytes(state(3, "x", "y"))
    assert ground.mend()
    assert ground.live == states.State(lineage="a", serial=4, addresses=("t.x", "t.y"))
    assert not left.exists()
    assert ground.mend()
    assert len(ground.asked) == 1


@pytest.mark.parametrize("content", [state(2, "x", "y"), state(9, "x", lineage="b"), b"{"])
def test_an_old_state_or_another_that_terraform_left_is_not_brought_in(ground: Ground, content: bytes) -> None:
    ground.states(state(2, "x"))
    (ground.folder / "errored.tfstate").write_bytes(content)
    assert ground.mend()
    assert ground.asked == []
    assert ground.live.addresses == ("t.x",)


def test_the_locks_of_this_environment_are_found_and_no_others(ground: Ground) -> None:
    ground.lock()
    ground.lock(stack="queues/below")
    ground.write("deploy.lock", b'{"Who": "builder@worker", "Operation": "apply"}')
    ground.cloud.put_blob(STATES, "lab/queues/default.tflock", b"{}", {}, keep_old=True)
    whole, queues = locks.held(ground.clients, ground.names)
    assert str(whole) == "the environment is held by builder@worker, apply, since an unknown time"
    assert str(queues).startswith("the state of queues is held by ada@far-away, apply, since 2020-01-01T00:00:00")
    assert (whole.young, queues.young) == (False, False)


def test_a_lock_that_was_taken_anew_meanwhile_is_not_released(ground: Ground) -> None:
    ground.lock()
    (first,) = locks.held(ground.clients, ground.names)
    ground.lock("bob@elsewhere")
    assert not locks.release(ground.clients, ground.names, first)
    (second,) = locks.held(ground.clients, ground.names)
    assert locks.release(ground.clients, ground.names, second)
    assert not ground.locked


def test_a_lock_is_young_for_some_minutes(ground: Ground) -> None:
    with locks.taken(ground.clients, ground.names, "queues", operation="test"):
        (lock,) = locks.held(ground.clients, ground.names)
        assert lock.young
        assert lock.ours
        again = locks.taken(ground.clients, ground.names, "queues", operation="test")
        with pytest.raises(Failed, match="Locked: the state of queues"), again:
            pass
    assert not ground.locked


@pytest.mark.parametrize(
    ("who", "program", "prefix", "place", "seen"),
    [
        ("ada@HERE", "/usr/bin/terraform", "tpu/queues", "PLACE", True),
        ("ada@HERE", "/x/terraform-recorded", "tpu/queues", "PLACE", True),
        ("ada@HERE", "/usr/bin/tofu", "tpu/queues", "PLACE", True),
        ("ada@far-away", "/usr/bin/terraform", "tpu/queues", "PLACE", False),
        ("ada@HERE", "/usr/bin/vim", "tpu/queues", "PLACE", False),
        ("ada@HERE", "/usr/bin/terraform", "tpu/cluster", "PLACE", False),
        ("ada@HERE", "/usr/bin/terraform", "tpu/queues", "elsewhere", False),
    ],
)
def test_a_terraform_at_work_on_the_locked_state_is_seen(
    ground: Ground, who: str, program: str, prefix: str, place: str, seen: bool
) -> None:
    place = place.replace("PLACE", os.environ["GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT"])
    process = ground.folder / "proc" / "42"
    (process / "cwd").mkdir(parents=True)
    (process / "cmdline").write_bytes(f"{program}\0apply\0".encode())
    (process / "environ").write_bytes(f"A=b\0GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT={place}\0".encode())
    backend = {"gcs": {"bucket": STATES, "prefix": prefix}}
    (process / "cwd" / "cdk.tf.json").write_text(json.dumps({"terraform": {"backend": backend}}))
    ground.lock(who.replace("HERE", socket.gethostname()))
    (lock,) = locks.held(ground.clients, ground.names)
    assert locks.living(lock, ground.names, processes=ground.folder / "proc") == ([42] if seen else [])


def test_without_a_terminal_nothing_is_done_unasked(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    ground.lock()
    assert main(["recover"]) == 1
    assert "there is no terminal to ask at; add --yes, or --dry-run" in capsys.readouterr().err
    assert ground.locked


@pytest.mark.parametrize(("named", "found"), [([], 0), ([4], 1), ([1, 4], 2)])
def test_what_has_its_id_from_the_server_is_found_by_its_name(ground: Ground, named: list[int], found: int) -> None:
    for number in range(1, 6):
        name = "tpu" if number in named else f"other-{number}"
        ground.cloud.put(BOARD, f"{BOARDS}/{number}", {"display_name": name})
    values = {"project": "some-project", "region": "us-central1", "display_name": "tpu"}
    objects: list[Object] = []
    unclear: dict[str, str] = {}
    by_name(ground.clients, Planned(address="x.y", type_=BOARD, values=values), objects, unclear)
    assert objects == ([Object(address="x.y", id_=f"{BOARDS}/{named[0]}")] if found == 1 else [])
    told = f"2 objects are named 'tpu': {BOARDS}/1, {BOARDS}/4." if found == 2 else ""
    assert told in unclear.get("x.y", "")
    assert bool(unclear) == (found == 2)
