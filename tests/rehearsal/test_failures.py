"""What goes wrong in the middle, with the real Terraform: the next run goes on, or `tpuenv recover` lets it."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rehearsal.google.cloud_storage_api import BUCKET
from tests.loading import loaded
from tests.rehearsal import failures
from tests.rehearsal.ground import STACKS, STATES, Ground, Things, ground_of, same  # type: ignore[attr-defined]
from tests.rehearsal.saved import restore, save

pytestmark = pytest.mark.slow

SUBNET = "projects/my-project/regions/us-east5/subnetworks/tpu-subnet"


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with ground_of(loaded(), "PROJECT_ID=my-project\n", tmp_path_factory.mktemp("failures")) as ground:
        yield ground


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """What exists after the deploy of a stack, and of those before it, in which nothing goes wrong."""

    things: Things
    saved: Path

    def restore(self, ground: Ground) -> None:
        restore(ground.world.cloud, self.saved)


@pytest.fixture(scope="module")
def undisturbed(once: Ground, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Deployed]:
    """By the stack that was deployed last."""
    once.empty()
    folder, deployed = tmp_path_factory.mktemp("undisturbed"), {}
    for stack in once.stacks:
        once.apply(stack)
        deployed[stack] = Deployed(things=once.things, saved=save(once.world.cloud, folder / f"{stack}.db"))
    return deployed


@pytest.fixture
def foundation(undisturbed: dict[str, Deployed]) -> Things:
    return undisturbed["foundation"].things


@pytest.fixture
def whole(undisturbed: dict[str, Deployed]) -> Deployed:
    """The whole environment."""
    return undisturbed[STACKS[-1]]


@pytest.fixture
def ground(once: Ground, undisturbed: dict[str, Deployed]) -> Iterator[Ground]:
    """Empty again."""
    once.empty()
    yield once
    failures.turn_off(once.world.cloud)


def test_after_sigterm_the_next_run_goes_on_by_itself(ground: Ground, foundation: Things) -> None:
    failures.turn_on(ground.world.cloud, failures.SILENT, after=20)
    running = ground.start_apply("foundation")
    ground.wait(running)
    running.send_signal(signal.SIGTERM)
    assert running.stdout is not None
    assert any(line.startswith(("Interrupt received", "Stopping operation")) for line in running.stdout)
    failures.turn_off(ground.world.cloud)
    running.communicate()
    assert running.returncode != 0
    assert ground.locks == []
    assert len(ground.things) < len(foundation)
    ground.deploy(["foundation"])
    same(ground.things, foundation)
    ground.unchanged(["foundation"])


@pytest.mark.parametrize(
    ("stack", "after"),
    [
        pytest.param("foundation", 18, marks=pytest.mark.killed),
        pytest.param("platform", 4, marks=pytest.mark.killed),
        ("queues", 3),
    ],
)
def test_after_sigkill_the_next_run_stops_and_recover_lets_it_go_on(
    ground: Ground, undisturbed: dict[str, Deployed], whole: Deployed, stack: str, after: int
) -> None:
    if stack != STACKS[0]:
        undisturbed[STACKS[STACKS.index(stack) - 1]].restore(ground)
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
    assert "All that was wrong is corrected.\nNext: tpuenv deploy\n" in said
    assert ground.things == before
    assert ground.locks == []
    ground.deploy(STACKS[STACKS.index(stack) :])
    same(ground.things, whole.things)
    ground.unchanged()
    assert "Nothing is wrong." in ground.recover("--yes")


def test_a_deploy_that_stops_names_the_lock_and_what_exists_in_no_state(
    ground: Ground, undisturbed: dict[str, Deployed]
) -> None:
    undisturbed["foundation"].restore(ground)
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
    assert said.rstrip().endswith("`tpuenv recover` corrects that.")
    lock = json.dumps(
        {"ID": "1", "Who": "ada@far-away", "Operation": "OperationTypeApply", "Created": "2020-01-01T00:00:00Z"}
    ).encode()
    ground.world.cloud.put_blob(STATES, "tpu/foundation/default.tflock", lock, {}, keep_old=True)
    assert "Locked: the state of foundation is held by ada@far-away, apply" in ground.tpuenv(*deploy, code=1)
    ground.recover("--yes")
    ground.apply("foundation")


def test_the_loss_of_every_state_is_made_good_by_imports(ground: Ground, whole: Deployed) -> None:
    whole.restore(ground)
    ground.forget(*STACKS)
    before = ground.things
    said = ground.recover("--yes")
    assert ground.things == before
    assert re.search(r"\[1/\d+\] imported google_vertex_ai_tensorboard\.tensorboard", said)
    assert said.count("imported ") > 30
    assert not re.search("replaced|deleted", said)
    ground.deploy()
    same(ground.things, whole.things)
    ground.unchanged()


def test_a_state_bucket_that_goes_in_the_middle_is_made_again_with_what_terraform_kept(
    ground: Ground, foundation: Things
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
    assert "tpuenv recover --yes --new-bucket" in ground.recover("--yes", code=1)
    assert ground.world.cloud.get(BUCKET, STATES) is None
    said = ground.recover("--yes", "--new-bucket")
    assert f"Created bucket {STATES}" in said
    assert "written, as serial" in said
    assert not errored.exists()
    ground.deploy(["foundation"])
    same(ground.things, foundation)
    ground.unchanged(["foundation"])


def test_a_403_half_way_leaves_a_state_that_the_next_run_goes_on_from(ground: Ground, foundation: Things) -> None:
    failures.turn_on(ground.world.cloud, failures.REFUSE, after=2, types="google_compute_.*")
    said = ground.apply("foundation", code=1)
    assert "Error 403" in said
    failures.turn_off(ground.world.cloud)
    assert ground.locks == []
    assert "Nothing is wrong." in ground.recover("--yes")
    ground.deploy(["foundation"])
    same(ground.things, foundation)
    ground.unchanged(["foundation"])


def test_a_lock_that_somebody_deletes_during_an_apply_does_no_damage_and_is_reported(ground: Ground) -> None:
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
    assert f"At work on this machine: process {running.pid}" in said
    assert "foundation: not checked, because of its lock" in said
    assert ground.locks == ["tpu/foundation/default.tflock"]
    failures.turn_off(ground.world.cloud)
    running.communicate()
    assert running.returncode == 0
    assert "Nothing is wrong." in ground.recover("--yes")
