"""`tpuenv plan`, `apply` and `destroy --confirm` with the real Terraform, as processes, in a fake cloud."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rehearsal import started_processes
from rehearsal.cloudbuild import builds
from rehearsal.cloudbuild.triggers import TRIGGER
from rehearsal.world import ROOT, World
from tests.loading import loaded
from tests.rehearsal import failures
from tests.rehearsal.deployed import world_of
from tests.rehearsal.saved import restore, save

pytestmark = pytest.mark.slow

LOCK = "tpu/deploy.lock"
STATES = "my-project-tpu-tf-state"
NETWORK = "projects/my-project/global/networks/tpu-network"

SLICE = "projects/my-project/locations/us-east5/clusters/tpu-cluster/nodePools/tpu-0"


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """A fake cloud, and the commands in it."""

    world: World
    records: Path
    said: list[str] = field(default_factory=list)

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        settled = {"TERRAFORM_BINARY_NAME": str(self.world.folder / "terraform-recorded"), **variables}
        return subprocess.Popen(
            [sys.executable, "-m", "tpuenv", *arguments, "--output", str(self.world.output)],
            cwd=ROOT,
            env=self.world.environment(**settled),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @contextmanager
    def unanswered_apply(self) -> Iterator[subprocess.Popen[str]]:
        """`tpuenv apply foundation` that created a network and, until the end of the block, gets no answer about it."""
        failures.turn_on(self.world.cloud, failures.SILENT, after=0, types="google_compute_network")
        with self.start("apply", "foundation", "--reviewed", str(self.records)) as running:
            try:
                _read_until(running, "google_compute_network.network: Creating...")
                while not self.world.cloud.find("google_compute_network"):
                    assert running.poll() is None
                    time.sleep(0.01)
                yield running
            finally:
                failures.turn_off(self.world.cloud)

    def interrupted_apply(self, number: signal.Signals) -> int:
        """The exit code of an apply that gets a signal while it waits for an answer, and then the answer."""
        with self.unanswered_apply() as running:
            os.kill(running.pid, number)
            _read_until(running, "Interrupt received")
            failures.turn_off(self.world.cloud)
            self.said.append(running.communicate(timeout=300)[0])
        return running.returncode

    def __call__(self, *arguments: str, **variables: str) -> int:
        """The exit code; what was printed is in `text`."""
        with self.start(*arguments, **variables) as running:
            self.said.append(running.communicate(timeout=300)[0])
        return running.returncode

    def plan(self, *arguments: str, **variables: str) -> int:
        return self("plan", "--record", str(self.records), *arguments, **variables)

    def apply(self, *arguments: str, **variables: str) -> int:
        return self("apply", "--reviewed", str(self.records), *arguments, **variables)

    @property
    def text(self) -> str:
        return self.said[-1]

    @property
    def locks(self) -> list[str]:
        names = [blob.name for blob in self.world.cloud.blobs(STATES)]
        return [name for name in names if name.endswith("lock")]


def _read_until(running: subprocess.Popen[str], text: str) -> None:
    """Until it has printed a line with this text. Fails when it ends without one."""
    assert running.stdout is not None
    lines = []
    for line in running.stdout:
        lines.append(line)
        if text in line:
            return
    raise AssertionError(f"ended without {text!r}:\n" + "".join(lines))


@pytest.fixture(scope="module")
def only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    folder = tmp_path_factory.mktemp("apply")
    (folder / "vars.env").write_text("PROJECT_ID=my-project\n")
    with world_of(loaded(), folder / "world", TPUENV_FOLDER=str(folder)) as world:
        yield Cloud(world=world, records=folder / "plans")


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A fake cloud and the records of plans, as they were at one moment."""

    cloud: Path
    records: Path

    @classmethod
    def of(cls, cloud: Cloud, folder: Path) -> Saved:
        shutil.copytree(cloud.records, folder / "records")
        return cls(cloud=save(cloud.world.cloud, folder / "cloud.db"), records=folder / "records")

    def restore(self, cloud: Cloud) -> Cloud:
        restore(cloud.world.cloud, self.cloud)
        for folder in (cloud.records, cloud.world.output):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.records, cloud.records)
        return cloud


@pytest.fixture(scope="module")
def at_first(only: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    only.records.mkdir()
    return Saved.of(only, tmp_path_factory.mktemp("at-first"))


@pytest.fixture(scope="module")
def with_plan(only: Cloud, at_first: Saved, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    assert at_first.restore(only).plan("foundation") == 0
    return Saved.of(only, tmp_path_factory.mktemp("with-plan"))


@pytest.fixture(scope="module")
def with_foundation(only: Cloud, with_plan: Saved, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    assert with_plan.restore(only).apply("foundation") == 0
    return Saved.of(only, tmp_path_factory.mktemp("with-foundation"))


@pytest.fixture
def cloud(only: Cloud, at_first: Saved) -> Cloud:
    """Empty, and nothing is planned."""
    return at_first.restore(only)


@pytest.fixture
def planned(only: Cloud, with_plan: Saved) -> Cloud:
    """Empty; the plan of foundation is on record."""
    return with_plan.restore(only)


@pytest.fixture
def applied(only: Cloud, with_foundation: Saved) -> Cloud:
    """The foundation is applied as it was planned."""
    return with_foundation.restore(only)


def test_an_environment_is_deployed_as_reviewed_and_what_could_not_be_planned_waits_for_approval(cloud: Cloud) -> None:
    assert cloud.plan() == 0
    assert (
        "changes: foundation, cluster, tpu-node-pools\nnot plannable yet: platform, queues, observability\n"
        in cloud.text
    )
    assert "platform: not plannable until the cluster exists (stack cluster)" in cloud.text
    assert "until now, and then 88.35+ (+: more, at unknown prices)\n  no known price: +800 GiB of hyper" in cloud.text
    assert "      mtu: 8896" in cloud.text
    assert cloud.world.cloud.find("google_compute_network") == []

    assert cloud.apply() == 3
    assert "platform: not reviewed yet: it was not plannable until the cluster exists" in cloud.text
    assert "observability: not reviewed yet: it was not plannable until the cluster exists" in cloud.text
    assert "queues: not reviewed yet" not in cloud.text
    assert "Waiting for approval: platform, tpu-node-pools, queues, observability" in cloud.text
    assert cloud.world.cloud.find("helm_release") == []
    assert cloud.locks == []

    # The next run is the approved one: what the last has shown and recorded is reviewed.
    assert cloud.apply() == 3
    assert "foundation: no changes" in cloud.text
    assert "platform: as reviewed; applying it" in cloud.text
    assert "Waiting for approval: queues, observability." in cloud.text
    assert cloud.apply() == 0
    assert "Done: foundation, cluster, platform, tpu-node-pools, queues, observability" in cloud.text

    assert cloud.plan("--expect-no-changes") == 0
    assert cloud.text.endswith("no changes: foundation, cluster, platform, tpu-node-pools, queues, observability\n")

    _somebody_resizes_a_slice(cloud, hosts=2)
    assert cloud("plan", "tpu-node-pools", NUM_TPU_POOLS="3") == 0
    assert ": +64.80 USD an hour while jobs use every slice, +64.80 while none runs;\n" in cloud.text
    assert (
        "  of the stacks above at most 64.80+ until now, and then 129.60+ (+: more, at unknown prices)\n" in cloud.text
    )
    _somebody_resizes_a_slice(cloud, hosts=4)

    _somebody_changes_the_network(cloud)
    assert cloud("plan", "foundation", "--expect-no-changes") == 1
    assert "  drift: google_compute_network.network was changed behind Terraform's back" in cloud.text
    assert '      routing_mode: "GLOBAL" -> "REGIONAL"' in cloud.text
    assert "foundation would change. Somebody changed the cloud by hand, or a commit was not deployed." in cloud.text

    before = cloud.world.cloud.snapshot()
    assert cloud.apply() == 3
    assert "foundation: not reviewed yet: the cloud was changed since its review" in cloud.text
    assert cloud.world.cloud.snapshot() == before
    assert cloud.apply() == 0
    assert _network(cloud) == "REGIONAL"


def _somebody_changes_the_network(cloud: Cloud, *, mode: str = "GLOBAL") -> None:
    cloud.world.cloud.change("google_compute_network", NETWORK, lambda attributes: attributes.update(routing_mode=mode))


def _somebody_resizes_a_slice(cloud: Cloud, *, hosts: int) -> None:
    cloud.world.cloud.change(
        "google_container_node_pool", SLICE, lambda attributes: attributes.update(node_count=hosts)
    )


def _network(cloud: Cloud) -> str:
    network = cloud.world.cloud.get("google_compute_network", NETWORK)
    return str(network and network["routing_mode"])


def test_what_was_put_back_and_changed_by_hand_once_more_is_asked_for_once_more(applied: Cloud) -> None:
    """The plan is the recorded one, value for value, but that was applied."""
    for _ in range(2):
        _somebody_changes_the_network(applied)
        assert applied.apply("foundation") == 3
        assert "foundation: not reviewed yet: the plan on record (commit" in applied.text
        assert ") was applied already, and this is another plan. The plan above is recorded now" in applied.text
        assert '      routing_mode: "GLOBAL" -> "REGIONAL"' in applied.text
        assert _network(applied) == "GLOBAL"
        assert applied.apply("foundation") == 0
        assert _network(applied) == "REGIONAL"


def test_after_a_destroy_the_same_content_is_asked_for_again(applied: Cloud) -> None:
    assert applied("destroy", "--confirm", "tpu", "--foundation", "destroy") == 0
    assert applied.apply("foundation") == 3
    assert "was applied already, and this is another plan" in applied.text


def test_after_a_stop_the_rest_is_applied_but_not_what_was_changed_by_hand_meanwhile(planned: Cloud) -> None:
    assert planned.interrupted_apply(signal.SIGTERM) == 143
    assert planned.locks == []
    assert "tpu/foundation/unfinished" in [blob.name for blob in planned.world.cloud.blobs(STATES)]

    _somebody_changes_the_network(planned)
    before = planned.world.cloud.snapshot()
    assert planned.apply("foundation") == 3
    assert "stopped before its end, and this is more than what is left of it:\n" in planned.text
    assert "  google_compute_network.network: reviewed: create, now: change\n" in planned.text
    assert planned.world.cloud.snapshot() == before

    _somebody_changes_the_network(planned, mode="REGIONAL")
    assert planned.plan("foundation") == 0
    assert planned.apply("foundation") == 0
    assert "tpu/foundation/unfinished" not in [blob.name for blob in planned.world.cloud.blobs(STATES)]


def test_the_same_content_planned_again_from_another_commit_is_the_same_record(cloud: Cloud) -> None:
    assert cloud.plan("foundation", COMMIT_SHA="a" * 40) == 0
    (record,) = cloud.records.rglob("*.json")
    first = json.loads(record.read_text())
    assert cloud.plan("foundation", COMMIT_SHA="b" * 40) == 0
    assert list(cloud.records.rglob("*.json")) == [record]
    assert json.loads(record.read_text()) == {**first, "commit": "b" * 40}


def test_a_plan_names_a_deployed_stack_that_the_settings_no_longer_have(cloud: Cloud) -> None:
    resources = [{"mode": "managed", "type": "google_tpu_v2_vm", "name": "vm", "instances": [{"attributes": {}}]}]
    state = {"version": 4, "serial": 1, "lineage": "a", "resources": resources}
    cloud.world.cloud.put_blob(STATES, "tpu/tpu-vms/default.tfstate", json.dumps(state).encode(), {}, keep_old=False)
    assert cloud.plan("foundation") == 0
    assert (
        "tpu-vms: the settings have no such stack any more, and 1 resource of it in the cloud may still cost money"
        in cloud.text
    )


def test_a_plan_that_does_more_than_was_reviewed_is_shown_and_asked_for(planned: Cloud) -> None:
    (path,) = planned.records.rglob("*.json")
    record = json.loads(path.read_text())
    record["resources"] = [
        resource for resource in record["resources"] if resource["address"] != "google_compute_network.network"
    ]
    path.write_text(json.dumps(record))
    before = planned.world.cloud.snapshot()
    assert planned.apply("foundation") == 3
    assert "foundation: not reviewed yet: it is not the plan on record (commit " in planned.text
    assert "google_compute_network.network: reviewed: nothing, now: create" in planned.text
    assert planned.world.cloud.snapshot() == before
    assert planned.apply("foundation") == 0


def test_what_nobody_planned_is_not_applied(planned: Cloud) -> None:
    assert planned.apply("foundation", TPU_TYPE="v6e-32") == 3
    assert "foundation: not reviewed yet: there is no record of it" in planned.text
    assert planned.world.cloud.find("google_compute_network") == []


def test_approval_is_asked_for_with_a_build_of_the_same_commit(cloud: Cloud) -> None:
    trigger = "projects/my-project/locations/us-east5/triggers/1"
    cloud.world.cloud.put(TRIGGER, trigger, {"name": "tpu-deploy", "approval_config": [{"approval_required": True}]})
    assert cloud.apply("foundation", "--ask", "tpu-deploy", COMMIT_SHA="c" * 40) == 0
    assert "Waiting for approval: foundation." in cloud.text
    (build,) = builds.builds(cloud.world.cloud)
    assert (build.status, build.commit) == ("PENDING", "c" * 40)
    assert f"builds;region=us-east5/{build.id_}?project=my-project" in cloud.text
    assert cloud.world.cloud.find("google_compute_network") == []
    assert cloud.locks == []

    assert cloud.apply("foundation", "--ask", "tpu-deploy", COMMIT_SHA="c" * 40) == 0
    assert "foundation: as reviewed; applying it" in cloud.text
    assert len(builds.builds(cloud.world.cloud)) == 1


def test_two_at_a_time_come_one_after_the_other(planned: Cloud) -> None:
    both = [planned.start("apply", "foundation", "--reviewed", str(planned.records)) for _ in range(2)]
    texts = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], texts
    assert sorted("Apply complete!" in text for text in texts) == [False, True]
    second = next(text for text in texts if "Apply complete!" not in text)
    assert "foundation: no changes" in second
    assert "the environment is held by" in second
    assert planned.locks == []


def test_who_waits_too_long_is_reported_for_whom(cloud: Cloud) -> None:
    holder = {"ID": "1", "Operation": "apply", "Who": "builder@host", "Created": "2026-01-01T00:00:00Z"}
    cloud.world.cloud.put_blob(STATES, LOCK, json.dumps(holder).encode(), {}, keep_old=False)
    assert cloud.apply("foundation", "--wait", "1s") == 1
    assert "Locked: the environment is held by builder@host, apply, since 2026-01-01T00:00:00Z" in cloud.text
    assert "tpuenv recover" in cloud.text
    assert cloud.locks == [LOCK]


@pytest.mark.parametrize(
    ("number", "code"), [pytest.param(signal.SIGTERM, 143, marks=pytest.mark.killed), (signal.SIGINT, 130)]
)
def test_a_signal_in_the_middle_leaves_no_lock_and_the_next_run_goes_on(
    planned: Cloud, number: signal.Signals, code: int
) -> None:
    assert planned.interrupted_apply(number) == code, planned.text
    assert planned.locks == []
    made = len(planned.world.cloud.snapshot())

    assert planned.apply("foundation") == 0
    assert len(planned.world.cloud.snapshot()) > made
    assert planned("plan", "foundation", "--expect-no-changes") == 0


def test_a_typed_confirmation_destroys_all_but_the_foundation(applied: Cloud) -> None:
    assert applied.plan("cluster") == 0
    assert applied.apply("cluster") == 0
    before = applied.world.cloud.snapshot()
    for wrong in ("", "TPU", "my-project"):
        assert applied("destroy", "--confirm", wrong) == 1
        assert f"--confirm: '{wrong}' is not the RESOURCE_PREFIX" in applied.text
    assert applied("destroy", "--confirm", "tpu", "pipeline") == 1
    assert applied.apply("pipeline") == 1
    assert "pipeline: a build must not change its own identity" in applied.text
    assert applied.world.cloud.snapshot() == before

    assert applied("destroy", "--confirm", "tpu") == 0
    assert "queues: nothing is there" in applied.text
    assert applied.world.cloud.find("google_container_cluster") == []
    assert applied.world.cloud.get("google_compute_network", NETWORK) is not None
    assert applied.locks == []

    bucket = "my-project-tpu-tpu-training"
    applied.world.cloud.put_blob(bucket, "checkpoint", b"precious", {}, keep_old=False)
    assert applied("destroy", "--confirm", "tpu", "--foundation", "destroy") == 0
    assert applied.world.cloud.find("google_storage_bucket", prefix=bucket) == []
    assert applied.world.cloud.get("google_compute_network", NETWORK) is None


def test_what_a_lost_state_would_leave_behind_stops_a_destroy_before_it_begins(applied: Cloud) -> None:
    stacks = ("cluster", "tpu-node-pools")
    assert applied.plan(*stacks) == 0
    assert applied.apply(*stacks) == 0
    before = applied.world.cloud.find()
    for stack in ("cluster", "tpu-node-pools"):
        applied.world.cloud.delete_blob(STATES, f"tpu/{stack}/default.tfstate", keep_old=True)
    for whose in (("--confirm", "tpu"), ("clus*", "tpu-node-pools", "--auto-approve", "--", "--skip-provider-lock")):
        assert applied("destroy", *whose, DELETION_PROTECTION="false") == 1
        assert "nothing was destroyed, because it would leave what the states do not have" in applied.text
        assert "In the cloud, but in no state: google_container_cluster.cluster" in applied.text
        assert "In the cloud, but in no state: google_container_node_pool." in applied.text
        assert "`tpuenv recover` corrects that; then destroy again." in applied.text
        assert "nothing is there" not in applied.text
        assert applied.world.cloud.find() == before
        assert applied.locks == []

    applied.world.cloud.put_blob(STATES, "tpu/cluster/default.tfstate", b"{", {}, keep_old=True)
    assert applied("destroy", "--confirm", "tpu", "cluster") == 1
    assert "cluster: its state is damaged" in applied.text

    assert applied("recover", "--yes") == 0
    assert applied("destroy", "--confirm", "tpu") == 0
    assert applied.world.cloud.find("google_container_cluster") == []
    assert applied("destroy", "--confirm", "tpu") == 0


def test_after_a_kill_the_next_run_names_lock_and_what_nobody_owns_and_recover_lets_it_go_on(
    planned: Cloud,
) -> None:
    with planned.unanswered_apply() as running:
        (terraform,) = [pid for pid in started_processes.recorded(planned.world.processes) if os.getsid(pid) == pid]
        for pid in (running.pid, terraform):
            os.kill(pid, signal.SIGKILL)
        running.communicate()
    assert planned.locks == ["tpu/deploy.lock", "tpu/foundation/default.tflock"]

    assert planned.apply("foundation", "--wait", "1s") == 1
    assert "Locked: the environment is held by" in planned.text
    assert "the state of foundation is held by" in planned.text
    assert "tpu-network" in planned.text

    assert planned("recover", "--yes") == 0
    assert planned.locks == []
    assert planned.apply("foundation") == 0
    assert planned("plan", "foundation", "--expect-no-changes") == 0
