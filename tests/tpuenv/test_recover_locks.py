"""Locks in the state bucket: read, kept while their holder may be at work, and released, but no later ones."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml

import environment
from environment.project import ROOT
from rehearsal import http_server
from rehearsal.cloudbuild.builds import BUILD
from tests.bucket_ground import STATES, Ground, ground_in
from tpuenv.commands import recover
from tpuenv.commands.options import seconds
from tpuenv.failure import Failed
from tpuenv.google.clients import Patience
from tpuenv.recovery.recovery import Recovery
from tpuenv.state import locks
from tpuenv.terminal.dialog import Dialog
from tpuenv.terraform.stacks import Stack


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    with ground_in(tmp_path, monkeypatch) as ground:
        yield ground


def test_the_locks_of_this_environment_are_read_and_no_others(ground: Ground) -> None:
    ground.lock()
    ground.lock(stack="queues/below")
    ground.write("deploy.lock", b'{"Who": "builder@worker", "Operation": "apply"}')
    ground.cloud.put_blob(STATES, "lab/queues/default.tflock", b"{}", {}, keep_old=True)
    whole, queues = locks.read_locks(ground.clients, ground.names)
    assert str(whole) == "the environment is held by builder@worker, apply, since an unknown time"
    assert str(queues).startswith("the state of queues is held by ada@far-away, apply, since 2020-01-01T00:00:00")
    assert (whole.is_younger(1), queues.is_younger(600)) == (True, False), "one that does not say when counts as new"


def test_a_lock_that_was_taken_again_meanwhile_is_not_released(ground: Ground) -> None:
    ground.lock()
    (first,) = locks.read_locks(ground.clients, ground.names)
    ground.lock("bob@elsewhere")
    assert not locks.release_lock(ground.clients, ground.names, first)
    (second,) = locks.read_locks(ground.clients, ground.names)
    assert locks.release_lock(ground.clients, ground.names, second)
    assert not ground.locked


def test_a_lock_is_young_for_some_minutes(ground: Ground) -> None:
    with locks.hold_lock(ground.clients, ground.names, "queues", operation="test"):
        (lock,) = locks.read_locks(ground.clients, ground.names)
        assert lock.is_younger(600)
        assert not lock.is_younger(0)
        assert lock.on_this_machine
        assert lock.by_this_user
        again = locks.hold_lock(ground.clients, ground.names, "queues", operation="test")
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
    (lock,) = locks.read_locks(ground.clients, ground.names)
    assert locks.running_processes(lock, ground.names, proc=ground.folder / "proc") == ([42] if seen else [])


def test_the_holder_of_the_environments_lock_is_seen_by_its_process(ground: Ground) -> None:
    for pid, program in {42: "/usr/bin/python\0-m\0tpuenv\0apply\0", 43: "/usr/bin/vim\0"}.items():
        process = ground.folder / "proc" / str(pid)
        process.mkdir(parents=True)
        (process / "cmdline").write_bytes(program.encode())
    for pid, seen in {42: [42], 43: [], 44: []}.items():
        fields = {"Who": f"ada@{socket.gethostname()}", "Process": pid}
        ground.write("deploy.lock", json.dumps(fields).encode())
        (lock,) = locks.read_locks(ground.clients, ground.names)
        assert locks.running_processes(lock, ground.names, proc=ground.folder / "proc") == seen


def recovery(ground: Ground, *options: str, stacks: tuple[str, ...] = ()) -> Recovery:
    """`tpuenv recover --yes OPTIONS`."""
    given = recover.recover.make_context("recover", ["--yes", *options]).params
    return Recovery(
        environment=environment.load(ground.folder / "vars.env", {}),
        clients=ground.clients,
        stacks=[Stack(name=stack, folder=ground.folder) for stack in stacks],
        dialog=Dialog(answer=lambda _: True, unattended=True),
        dry_run=False,
        stale_after=given["stale_after"],
    )


def lock_environment(ground: Ground, *, machine: str = "far-away", minutes: int = 0, info: str = "") -> None:
    created = datetime.now(timezone.utc) - timedelta(minutes=minutes)
    fields = {
        "ID": "1", "Who": f"root@{machine}", "Operation": "apply", "Info": info,
        "Created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }  # fmt: skip
    ground.write("deploy.lock", json.dumps(fields).encode())


def environment_locked(ground: Ground) -> bool:
    return bool(ground.cloud.blobs(STATES, name="tpu/deploy.lock"))


@pytest.mark.parametrize(
    ("machine", "minutes", "options", "kept"),
    [
        ("far-away", 1, (), True),
        ("far-away", 5 * 60 + 59, (), True),
        ("far-away", 6 * 60 + 1, (), False),
        ("far-away", 1, ("--stale-after", "0m"), False),
        ("far-away", 11, ("--stale-after", "10m"), False),
        (socket.gethostname(), 0, (), False),
    ],
)
def test_with_yes_a_lock_of_another_machine_is_kept_until_nobody_can_hold_it_any_more(
    ground: Ground, capsys: pytest.CaptureFixture[str], machine: str, minutes: int, options: tuple[str, ...], kept: bool
) -> None:
    lock_environment(ground, machine=machine, minutes=minutes)
    assert recovery(ground, *options).run() == (1 if kept else 0)
    assert environment_locked(ground) == kept
    assert ("add --stale-after 0m" in capsys.readouterr().out) == kept


def test_no_build_outlives_what_a_lock_is_kept_for() -> None:
    for name in ("deploy", "destroy"):
        file = yaml.safe_load((ROOT / "cloudbuild" / f"{name}.yaml").read_text(encoding="utf-8"))
        assert seconds(file["timeout"]) <= seconds(recover.STALE_AFTER)


@pytest.mark.parametrize("status", ["PENDING", "QUEUED", "WORKING"])
def test_the_lock_of_a_build_that_runs_is_kept_however_old_it_is(
    ground: Ground, capsys: pytest.CaptureFixture[str], status: str
) -> None:
    put_build(ground, status)
    lock_environment(ground, minutes=7 * 60, info="commit c0ffee, build b-1")
    assert recovery(ground, "--stale-after", "0m").run() == 1
    assert environment_locked(ground)
    said = capsys.readouterr().out
    assert f"Cloud Build says that build b-1 is {status}" in said
    assert "wait for build b-1, or end it" in said


@pytest.mark.parametrize("status", ["FAILURE", "CANCELLED", "TIMEOUT", "INTERNAL_ERROR", "SUCCESS", "EXPIRED"])
def test_the_locks_of_a_build_that_is_over_are_released_however_young_they_are(
    ground: Ground, capsys: pytest.CaptureFixture[str], status: str
) -> None:
    put_build(ground, status)
    lock_environment(ground, info="commit c0ffee, build b-1")
    ground.lock("root@far-away")
    recovery(ground, stacks=("queues",)).run()
    assert not environment_locked(ground)
    assert not ground.locked
    assert f"Cloud Build says that build b-1 is {status}" in capsys.readouterr().out


def test_somebody_elses_lock_is_not_released_because_a_build_is_over(ground: Ground) -> None:
    put_build(ground, "FAILURE")
    lock_environment(ground, info="commit c0ffee, build b-1")
    ground.write("queues/default.tflock", b'{"ID": "2", "Who": "ada@elsewhere", "Operation": "apply"}')
    assert recovery(ground, stacks=("queues",)).run() == 1
    assert not environment_locked(ground)
    assert ground.locked


def test_what_a_build_that_runs_holds_beside_is_kept_too(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    put_build(ground, "WORKING")
    lock_environment(ground, minutes=20, info="commit c0ffee, build b-1")
    ground.lock("root@far-away")
    assert recovery(ground, "--stale-after", "0m", stacks=("queues",)).run() == 1
    assert environment_locked(ground)
    assert ground.locked
    assert capsys.readouterr().out.count("wait for build b-1, or end it") == 4  # as it goes, and in the end


def test_locks_that_do_not_say_whose_they_are_are_not_one_holders(ground: Ground) -> None:
    put_build(ground, "FAILURE")
    ground.write("deploy.lock", b'{"Info": "commit c0ffee, build b-1"}')
    ground.write("queues/default.tflock", b"{}")
    assert recovery(ground, stacks=("queues",)).run() == 1
    assert not environment_locked(ground)
    assert ground.locked


@pytest.mark.parametrize("id_", ["b-1/../b-2", "b-1#x", "../triggers/x", "%2e%2e", "b-1?x=y", "b 1"])
def test_what_is_no_id_of_a_build_is_not_asked_for(
    ground: Ground, capsys: pytest.CaptureFixture[str], id_: str
) -> None:
    lock_environment(ground, info=f"commit c0ffee, build {id_}")
    assert recovery(ground).run() == 1
    said = capsys.readouterr().out
    assert "Cloud Build says" not in said
    assert "It is not known" not in said


@pytest.mark.nested_too_deeply
@pytest.mark.parametrize("answer", ["[]", '"WORKING"', "null", "{}", "no JSON", "[" * 100_000])
@pytest.mark.parametrize("status", [200, 403, 500])
def test_an_answer_that_nobody_understands_is_nothing_to_go_by(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, status: int
) -> None:
    server, address = http_server.start(lambda _: http_server.Response(status=status, body=answer.encode()))
    monkeypatch.setenv("GOOGLE_CLOUD_BUILD_CUSTOM_ENDPOINT", f"{address}/v1/")
    lock_environment(ground, info="commit c0ffee, build b-1")
    hasty = replace(recovery(ground), clients=replace(ground.clients, patience=Patience(again=0.2, poll=0.01)))
    assert hasty.run() == 1
    server.shutdown()
    server.server_close()
    assert environment_locked(ground)
    assert "It is not known whether build b-1 still runs: " in capsys.readouterr().out


@pytest.mark.nested_too_deeply
@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'"x"', b"", b'{"Who": "\\ud800\\u001b[31m", "Created": "2999-01-01T00:00:00Z"}']
)
def test_a_lock_that_nobody_understands_is_shown_in_one_line_and_kept(
    ground: Ground, capsysbinary: pytest.CaptureFixture[bytes], body: bytes
) -> None:
    ground.write("deploy.lock", body)
    assert recovery(ground).run() == 1
    assert environment_locked(ground)
    said = capsysbinary.readouterr().out
    assert b"\x1b" not in said
    assert b"min ago" not in said


def test_a_build_that_cannot_be_asked_for_is_nothing_to_go_by(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    lock_environment(ground, info="commit c0ffee, build b-1")
    assert recovery(ground).run() == 1
    assert environment_locked(ground)
    said = capsys.readouterr().out
    assert "It is not known whether build b-1 still runs: Google would not read build b-1" in said
    assert "gcloud builds describe b-1 --region=us-east5" in said
    assert recovery(ground, "--stale-after", "0m").run() == 0
    assert not environment_locked(ground)


def put_build(ground: Ground, status: str) -> None:
    path = "projects/some-project/locations/us-east5/builds/b-1"
    ground.cloud.put(BUILD, path, {"id": "b-1", "status": status})


def test_the_environments_lock_is_kept_while_a_lock_under_it_is_young(ground: Ground) -> None:
    lock_environment(ground, minutes=7 * 60)
    ground.write("queues/default.tflock", b'{"ID": "1", "Who": "root@far-away", "Operation": "apply"}')
    assert recovery(ground, stacks=("queues",)).run() == 1
    assert ground.locked
    assert environment_locked(ground)
