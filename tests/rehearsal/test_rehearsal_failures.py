"""What goes wrong in the middle, with the real Terraform: the next run goes on, or `tpuenv recover` lets it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from loading import loaded

from rehearsal import failures
from rehearsal.gcs import BUCKET
from rehearsal.world import ROOT, World
from tests.rehearsal.deployed import world_of

pytestmark = pytest.mark.slow

STATES = "my-project-tpu-tf-state"
STACKS = ("foundation", "cluster", "platform", "tpu-node-pools", "queues")
SUBNET = "projects/my-project/regions/us-east5/subnetworks/tpu-subnet"

# What counts how often something was made or touched, in the attributes of Kubernetes objects and releases.
_COUNTS = ("uid", "resource_version", "resourceVersion", "generation", "observedGeneration", "etag", "revision")


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A played cloud, and the commands in it."""

    world: World

    def start(self, command: list[str], cwd: Path = ROOT) -> subprocess.Popen[str]:
        """In a process group of its own, so that all of it can be killed at once."""
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=self.world.environment(TERRAFORM_BINARY_NAME=str(self.world.folder / "terraform-recorded")),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: list[str], cwd: Path = ROOT, *, code: int | None = 0) -> str:
        with self.start(command, cwd) as running:
            said = running.communicate(timeout=300)[0]
        assert code is None or running.returncode == code, said
        return said

    def tpuenv(self, *arguments: str, code: int = 0) -> str:
        return self.run([sys.executable, "-m", "cli", *arguments], code=code)

    def recover(self, *arguments: str, code: int = 0) -> str:
        return self.tpuenv("recover", *arguments, "--output", str(self.world.output), code=code)

    def terraform(self, stack: str, *arguments: str, code: int | None = 0) -> str:
        command = [str(self.world.folder / "terraform-recorded"), *arguments, "-no-color"]
        return self.run(command, self.world.output / "stacks" / stack, code=code)

    def deploy(self, stacks: Sequence[str] = STACKS) -> None:
        """As cdktf does it, without the time that it takes."""
        for stack in stacks:
            self.apply(stack)

    def apply(self, stack: str, *, code: int = 0) -> str:
        self.terraform(stack, "init", "-reconfigure")
        return self.terraform(stack, "apply", "-auto-approve", code=code)

    def start_apply(self, stack: str) -> subprocess.Popen[str]:
        self.terraform(stack, "init", "-reconfigure")
        command = [str(self.world.folder / "terraform-recorded"), "apply", "-auto-approve", "-no-color"]
        return self.start(command, self.world.output / "stacks" / stack)

    def killed(self, stack: str, *, after: int) -> None:
        """An apply that is killed when changes were made whose answers it does not have."""
        failures.turn_on(self.world.cloud, failures.SILENT, after=after)
        running = self.start_apply(stack)
        self.wait(running)
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        failures.turn_off(self.world.cloud)

    def wait(self, running: subprocess.Popen[str]) -> None:
        """Until the first change fails."""
        limit = time.monotonic() + 120
        while not failures.failing(self.world.cloud):
            if running.poll() is not None or time.monotonic() > limit:
                running.kill()
                raise AssertionError(running.communicate()[0])
            time.sleep(0.01)

    def unchanged(self) -> None:
        for stack in STACKS:
            self.terraform(stack, "plan", "-detailed-exitcode")

    @property
    def things(self) -> dict[tuple[str, str], Any]:
        """All that exists but the states, without what only counts changes."""
        return {(item.kind, item.name): _steady(item.attributes) for item in self.world.cloud.find()}

    @property
    def locks(self) -> list[str]:
        return [blob.name for blob in self.world.cloud.blobs(STATES) if blob.name.endswith("lock")]

    def empty(self) -> None:
        """As it was at first."""
        cloud = self.world.cloud
        with cloud.transaction():
            for item in cloud.find():
                cloud.delete(item.kind, item.name)
            for blob in cloud.blobs(generations=True):
                cloud.delete_blob(blob.bucket, blob.name, keep_old=False, generation=blob.generation)
            cloud._connection.execute("DELETE FROM counters")
            self.world._bootstrap()
        for left in self.world.output.glob("stacks/*/errored.tfstate*"):
            left.unlink()

    def forget(self, *stacks: str, bucket: bool = False) -> None:
        """The states are gone with all their versions, and the bucket itself as well."""
        for blob in self.world.cloud.blobs(STATES, generations=True):
            if bucket or any(f"/{stack}/" in blob.name for stack in stacks):
                self.world.cloud.delete_blob(STATES, blob.name, keep_old=False, generation=blob.generation)
        if bucket:
            self.world.cloud.delete(BUCKET, STATES)


def _steady(value: Any) -> Any:
    """Without counts, and without what is empty: after an import and a change it is there, else it is left out."""
    if isinstance(value, dict):
        kept = {key: _steady(each) for key, each in value.items() if key not in _COUNTS}
        return {key: each for key, each in kept.items() if each not in (None, "", [], {})}
    return [_steady(each) for each in value] if isinstance(value, list) else value


def same(left: dict[tuple[str, str], Any], right: dict[tuple[str, str], Any]) -> None:
    """Both clouds are alike; fails with what differs."""
    assert {key: left.get(key) for key in {*left, *right} if left.get(key) != right.get(key)} == {
        key: right.get(key) for key in {*left, *right} if left.get(key) != right.get(key)
    }


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("failures")
    (folder / "vars.env").write_text("PROJECT_ID=my-project\n")
    with world_of(loaded(), folder / "world", TPUENV_FOLDER=str(folder)) as world:
        ground = Ground(world=world)
        environment = world.environment(CDKTF_OUTDIR=str(world.output))
        subprocess.run([sys.executable, "main.py"], cwd=ROOT, env=environment, check=True, capture_output=True)
        yield ground


@pytest.fixture(scope="module")
def undisturbed(once: Ground) -> dict[tuple[str, str], Any]:
    """What exists after a deploy in which nothing goes wrong."""
    once.empty()
    once.deploy()
    return once.things


@pytest.fixture
def ground(once: Ground, undisturbed: dict[tuple[str, str], Any]) -> Iterator[Ground]:
    """Empty again."""
    once.empty()
    yield once
    failures.turn_off(once.world.cloud)


def test_after_sigterm_the_next_run_goes_on_by_itself(ground: Ground, undisturbed: dict[tuple[str, str], Any]) -> None:
    failures.turn_on(ground.world.cloud, failures.SILENT, after=20)
    running = ground.start_apply("foundation")
    ground.wait(running)
    running.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    failures.turn_off(ground.world.cloud)
    said = running.communicate()[0]
    assert running.returncode != 0
    assert "Stopping operation" in said or "Interrupt received" in said
    assert ground.locks == []
    assert len(ground.things) < len(undisturbed)
    ground.deploy()
    same(ground.things, undisturbed)
    ground.unchanged()


@pytest.mark.parametrize(("stack", "after"), [("foundation", 18), ("platform", 4), ("queues", 3)])
def test_after_sigkill_the_next_run_stops_and_recover_lets_it_go_on(
    ground: Ground, undisturbed: dict[tuple[str, str], Any], stack: str, after: int
) -> None:
    ground.deploy(STACKS[: STACKS.index(stack)])
    ground.killed(stack, after=after)
    assert "Error acquiring the state lock" in ground.apply(stack, code=1)
    before = ground.things
    said = ground.recover("--dry-run", code=1)
    assert re.search(rf"the state of {stack} is held by \w+@\S+, apply, since 20", said)
    assert f"{stack}: " in said and " in the cloud, but in no state" in said
    assert ground.things == before
    assert ground.locks == [f"tpu/{stack}/default.tflock"]
    said = ground.recover("--yes")
    assert "released" in said
    assert "All that was wrong is put right.\nNext: tpuenv deploy\n" in said
    assert ground.things == before
    assert ground.locks == []
    ground.deploy()
    same(ground.things, undisturbed)
    ground.unchanged()
    assert "Nothing is wrong." in ground.recover("--yes")


def test_a_deploy_that_stops_names_the_lock_and_what_exists_in_no_state(ground: Ground) -> None:
    ground.apply("foundation")
    ground.terraform("foundation", "state", "rm", "google_compute_subnetwork.subnet")
    deploy = (
        "deploy",
        "foundation",
        "--auto-approve",
        "--",
        "--skip-provider-lock",
        "--output",
        str(ground.world.output),
    )
    said = ground.tpuenv(*deploy, code=1)
    assert "already exists" in said
    assert f"In the cloud, but in no state: google_compute_subnetwork.subnet ({SUBNET})" in said
    assert said.rstrip().endswith("`tpuenv recover` puts that right.")
    lock = json.dumps({"ID": "1", "Who": "ada@far-away", "Operation": "OperationTypeApply"}).encode()
    ground.world.cloud.put_blob(STATES, "tpu/foundation/default.tflock", lock, {}, keep_old=True)
    assert "Locked: the state of foundation is held by ada@far-away, apply" in ground.tpuenv(*deploy, code=1)
    ground.recover("--yes")
    ground.tpuenv(*deploy)


def test_the_loss_of_every_state_is_made_good_by_imports(
    ground: Ground, undisturbed: dict[tuple[str, str], Any]
) -> None:
    ground.deploy()
    ground.forget(*STACKS)
    before = ground.things
    said = ground.recover("--yes")
    assert ground.things == before
    assert "[1/10] imported google_vertex_ai_tensorboard.tensorboard" in said
    assert said.count("imported ") > 30
    assert not re.search("made anew|deleted", said)
    ground.deploy()
    same(ground.things, undisturbed)
    ground.unchanged()


def test_a_state_bucket_that_goes_in_the_middle_is_made_again_with_what_terraform_kept(
    ground: Ground, undisturbed: dict[tuple[str, str], Any]
) -> None:
    failures.turn_on(ground.world.cloud, failures.SILENT, after=20)
    running = ground.start_apply("foundation")
    ground.wait(running)
    ground.forget(bucket=True)
    failures.turn_off(ground.world.cloud)
    said = running.communicate()[0]
    assert running.returncode != 0
    errored = ground.world.output / "stacks" / "foundation" / "errored.tfstate"
    assert errored.exists(), said
    said = ground.recover("--dry-run", code=1)
    assert f"The state bucket gs://{STATES} is gone." in said
    assert ground.world.cloud.get(BUCKET, STATES) is None
    said = ground.recover("--yes")
    assert f"Made bucket {STATES}" in said
    assert "brought in, as serial" in said
    assert not errored.exists()
    ground.deploy()
    same(ground.things, undisturbed)
    ground.unchanged()


def test_a_403_half_way_leaves_a_state_that_the_next_run_goes_on_from(
    ground: Ground, undisturbed: dict[tuple[str, str], Any]
) -> None:
    failures.turn_on(ground.world.cloud, failures.REFUSE, after=2, types="google_compute_.*")
    said = ground.apply("foundation", code=1)
    assert "Error 403" in said
    failures.turn_off(ground.world.cloud)
    assert ground.locks == []
    assert "Nothing is wrong." in ground.recover("--yes")
    ground.deploy()
    same(ground.things, undisturbed)
    ground.unchanged()


def test_a_lock_that_somebody_deletes_during_an_apply_does_no_damage_and_is_told(ground: Ground) -> None:
    failures.turn_on(ground.world.cloud, failures.SILENT, after=20)
    running = ground.start_apply("foundation")
    ground.wait(running)
    ground.world.cloud.delete_blob(STATES, "tpu/foundation/default.tflock", keep_old=True)
    failures.turn_off(ground.world.cloud)
    said = running.communicate()[0]
    assert "Error releasing the state lock" in said
    assert "Nothing is wrong." in ground.recover("--yes")
    ground.apply("foundation")
    ground.terraform("foundation", "plan", "-detailed-exitcode")


def test_the_lock_of_a_terraform_that_is_seen_at_work_is_not_released(ground: Ground) -> None:
    failures.turn_on(ground.world.cloud, failures.SILENT, after=20)
    running = ground.start_apply("foundation")
    ground.wait(running)
    said = ground.recover("--yes", code=1)
    assert f"Terraform is at work on this machine: process {running.pid}" in said
    assert "foundation: not looked at, because of its lock" in said
    assert ground.locks == ["tpu/foundation/default.tflock"]
    failures.turn_off(ground.world.cloud)
    running.communicate()
    assert running.returncode == 0
    assert "Nothing is wrong." in ground.recover("--yes")
