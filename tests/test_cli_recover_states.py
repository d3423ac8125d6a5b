"""Locks and states in the bucket: seen, released, mended, put back; with Google's client, in a played Cloud Storage."""

from __future__ import annotations

import argparse
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import environment
from cli import locks, main, recover, states
from cli.cloud import Clients, connect
from cli.dialog import Dialog
from cli.failure import Failed
from cli.import_ids import Planned
from cli.recovery import Recovery
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
    types = {"guard": "terraform_data"}
    resources = [
        {"mode": "managed", "type": types.get(name, "t"), "name": name, "instances": [{"attributes": {}}]}
        for name in names
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


def test_a_state_begun_anew_with_the_guard_alone_gives_way_to_the_one_before(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    ground.states(state(4, "guard", "x"), state(1, lineage="b"), state(2, "guard", lineage="b"))
    assert ground.mend()
    said = capsys.readouterr().out
    assert "its state is gone; there is one begun anew, which holds only terraform_data.guard" in said
    assert ground.live == states.State(lineage="a", serial=5, addresses=("terraform_data.guard", "t.x"))


def test_a_state_begun_anew_that_owns_something_stays_and_the_one_before_is_told(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_ = ground.states(state(4, "x", "y"), state(1, lineage="b"), state(2, "guard", "y", lineage="b"))
    assert ground.mend()
    assert ground.asked == []
    assert ground.live.serial == 2
    assert f"from before it was begun anew, version {first} of " in capsys.readouterr().out


def test_a_damaged_state_does_not_give_way_to_an_empty_one_begun_anew(ground: Ground) -> None:
    ground.states(state(4, "x"), state(1, lineage="b"), b"{")
    assert ground.mend()
    assert ground.live.addresses == ("t.x",)


@pytest.mark.parametrize(
    "contents",
    [
        [],
        [state(1, "guard", "x"), state(2, "guard")],
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


def test_what_terraform_could_not_write_is_brought_in_over_a_state_begun_anew(ground: Ground) -> None:
    ground.states(state(2, "x"), state(1, lineage="b"), state(2, "guard", lineage="b"))
    (ground.folder / "errored.tfstate").write_bytes(state(3, "x", "y"))
    assert ground.mend()
    assert ground.live.addresses == ("t.x", "t.y")


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
    assert (whole.younger(1), queues.younger(600)) == (True, False), "one that does not say when counts as new"


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
        assert lock.younger(600)
        assert not lock.younger(0)
        assert lock.here
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


def test_the_holder_of_the_environments_lock_is_seen_by_its_process(ground: Ground) -> None:
    for pid, program in {42: "/usr/bin/python\0-m\0cli\0apply\0", 43: "/usr/bin/vim\0"}.items():
        process = ground.folder / "proc" / str(pid)
        process.mkdir(parents=True)
        (process / "cmdline").write_bytes(program.encode())
    for pid, seen in {42: [42], 43: [], 44: []}.items():
        fields = {"Who": f"ada@{socket.gethostname()}", "Process": pid}
        ground.write("deploy.lock", json.dumps(fields).encode())
        (lock,) = locks.held(ground.clients, ground.names)
        assert locks.living(lock, ground.names, processes=ground.folder / "proc") == seen


@pytest.mark.parametrize(
    ("machine", "minutes", "options", "kept"),
    [
        ("far-away", 1, (), True),
        ("far-away", 9, (), True),
        ("far-away", 11, (), False),
        ("far-away", 1, ("--stale-after", "0m"), False),
        ("far-away", 20, ("--stale-after", "1h"), True),
        (socket.gethostname(), 0, (), False),
    ],
)
def test_with_yes_a_young_lock_of_another_machine_is_kept(
    ground: Ground, capsys: pytest.CaptureFixture[str], machine: str, minutes: int, options: tuple[str, ...], kept: bool
) -> None:
    created = datetime.now(timezone.utc) - timedelta(minutes=minutes)
    fields = {
        "ID": "1", "Who": f"root@{machine}", "Operation": "apply", "Info": "commit c0ffee, build b-1",
        "Created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }  # fmt: skip
    ground.write("deploy.lock", json.dumps(fields).encode())
    parser = argparse.ArgumentParser()
    recover.add_parser(parser.add_subparsers())
    args = parser.parse_args(["recover", *options])
    wanted = environment.load(ground.folder / "vars.env", {})
    dialog = Dialog(answer=lambda _: True, careful=True)
    recovery = Recovery(
        environment=wanted, clients=ground.clients, stacks=[], dialog=dialog, dry_run=False,
        stale_after=args.stale_after,
    )  # fmt: skip
    assert recovery.run() == (1 if kept else 0)
    said = capsys.readouterr().out
    assert bool(ground.cloud.blobs(STATES, name="tpu/deploy.lock")) == kept
    assert "commit c0ffee, build b-1" in said
    assert "gcloud builds describe b-1 --region=" in said
    assert ("add --stale-after 0m" in said) == kept


def test_the_environments_lock_is_kept_while_a_lock_under_it_is_young(ground: Ground) -> None:
    fields = {"ID": "1", "Who": "root@far-away", "Operation": "apply"}
    ground.write("deploy.lock", json.dumps({**fields, "Created": "2020-01-01T00:00:00Z"}).encode())
    ground.write("queues/default.tflock", json.dumps(fields).encode())
    recovery = Recovery(
        environment=environment.load(ground.folder / "vars.env", {}), clients=ground.clients,
        stacks=[Stack(name="queues", folder=ground.folder)], dialog=Dialog(answer=lambda _: True, careful=True),
        dry_run=False, stale_after=600,
    )  # fmt: skip
    assert recovery.run() == 1
    assert ground.locked
    assert ground.cloud.blobs(STATES, name="tpu/deploy.lock")


@pytest.mark.parametrize(("new_bucket", "made"), [(False, False), (True, True)])
def test_with_yes_a_state_bucket_is_made_anew_only_if_that_is_said(
    ground: Ground, capsys: pytest.CaptureFixture[str], new_bucket: bool, made: bool
) -> None:
    ground.cloud.delete(BUCKET, STATES)
    recovery = Recovery(
        environment=environment.load(ground.folder / "vars.env", {}), clients=ground.clients, stacks=[],
        dialog=Dialog(answer=lambda _: True, careful=True), dry_run=False, new_bucket=new_bucket,
    )  # fmt: skip
    assert recovery.run() == (0 if made else 1)
    assert (ground.cloud.get(BUCKET, STATES) is not None) == made
    said = capsys.readouterr().out
    assert f"gcloud storage restore gs://{STATES}#GENERATION" in said
    assert ("tpuenv recover --yes --new-bucket" in said) != made


def test_after_a_recovery_a_deploy_goes_through_the_pipeline_if_there_is_one(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parent / "cases" / "pipeline.env").read_text(encoding="utf-8")
    (ground.folder / "vars.env").write_text(text)
    wanted = environment.load(ground.folder / "vars.env", {"TF_STATE_BUCKET": STATES})
    dialog = Dialog(answer=lambda _: True, careful=True)
    assert Recovery(environment=wanted, clients=ground.clients, stacks=[], dialog=dialog, dry_run=False).run() == 0
    said = capsys.readouterr().out
    run = f"gcloud builds triggers run {wanted.names.trigger('deploy')} --region="
    assert run in said
    assert f" --branch={wanted.settings.build_branch}\n" in said
    assert "Next: tpuenv deploy" not in said


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
