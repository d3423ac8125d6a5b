"""`tpuenv rehearse`: what a person meets before it starts, and the whole of it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import environment
from cli import main
from cli.rehearse import Show
from rehearsal import processes
from rehearsal.report import by_stack
from rehearsal.rules.addresses import POOL
from rehearsal.world import Project, World
from tests.rehearsal.conftest import FLEET
from tests.rehearsal.deployed import world_of
from tests.rehearsal.played import CACHE, ROOT, Played
from tests.synthesis import Synthesis

CLUSTER = "projects/my-project/locations/us-east5/clusters/tpu-cluster"

whole = pytest.mark.slow


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROJECT_ID", "my-project")


def test_wrong_settings_are_told_in_a_line_each_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TPU_TYPE", "v6e-17")
    assert main(["rehearse", "--folder", str(tmp_path / "w")]) == 2
    told = capsys.readouterr()
    assert (told.out, len(told.err.splitlines())) == ("", 1)
    assert told.err.startswith("TPU_TYPE: unknown TPU type 'v6e-17'; did you mean 'v6e-16'?")
    assert not (tmp_path / "w").exists()


def test_a_folder_in_use_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = Project(id_="my-project", number="1", region="us-east5", state_bucket="s", services=[])
    with World(folder=tmp_path / "w", project=project, cache=CACHE):
        assert main(["rehearse", "--folder", str(tmp_path / "w")]) == 1
    assert "another rehearsal is running in" in capsys.readouterr().err


def test_a_missing_terraform_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERRAFORM_BINARY_NAME", "no-such-terraform")
    assert main(["rehearse", "--folder", str(tmp_path / "w")]) == 1
    assert "no-such-terraform: not found on the PATH; install Terraform 1.6" in capsys.readouterr().err


def test_help_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["rehearse", "--help"])
    assert "no account, no credentials, no network" in capsys.readouterr().out


def world_in(folder: Path) -> World:
    return world_of(environment.load(ROOT / "vars.env", {"PROJECT_ID": "my-project"}), folder, PROJECT_ID="my-project")


def show(world: World) -> Show:
    return Show(world, environment.load(ROOT / "vars.env", {"PROJECT_ID": "my-project"}))


def keep_state(played: Played, synthesis: Synthesis) -> str:
    """Write the state of the fleet's node pools as Terraform does, sorted by the alphabet; the bucket."""
    stack = synthesis.stack(FLEET, "tpu-node-pools")
    pools = stack["resource"]["google_container_node_pool"]
    resources = [
        {"type": POOL, "mode": "managed", "instances": [{"attributes": played.resources[f"{POOL}.{name}"].state}]}
        for name in sorted(pools)
    ]
    state = {"outputs": {"node_pools": stack["output"]["node_pools"]}, "resources": resources}
    played.cloud.put_blob("states", "tpu-node-pools/default.tfstate", json.dumps(state).encode(), {}, keep_old=True)
    return "states"


def test_what_exists_shows_each_group_of_the_fleet_with_its_capacity_and_in_its_order(
    fleet: Played, synthesis: Synthesis
) -> None:
    (row,) = by_stack(fleet.cloud, keep_state(fleet, synthesis))
    assert row.facts == [
        "pretrain: 2 slices x 32 hosts x 4 chips = 256 chips (tpu-v5p-slice 4x4x8, ct5p-hightpu-4t, us-east5-a, "
        "reservation training-2027 block training-2027-block-0001)",
        "dev: 4 slices x 4 hosts x 4 chips = 64 chips (tpu-v6e-slice 4x4, ct6e-standard-4t, us-east5-b, spot, "
        "autoscaled)",
        "serve: 2 slices x 2 hosts x 4 chips = 16 chips (tpu-v6e-slice 2x4, ct6e-standard-4t, us-east5-a, on-demand)",
        "burst: 4 slices x 4 hosts x 4 chips = 64 chips (tpu-v5-lite-podslice 4x4, ct5lp-hightpu-4t, us-east5-a, "
        "flex-start, autoscaled)",
    ]
    for number in range(4):
        state = fleet.resources[f"{POOL}.burst-{number}"].state
        assert state is not None
        state["queued_provisioning"] = [{"enabled": True}]
    (row,) = by_stack(fleet.cloud, keep_state(fleet, synthesis))
    assert row.facts[-1].endswith("us-east5-a, queued, autoscaled)")


def test_what_a_team_has_no_quota_of_is_left_out(synthesis: Synthesis, empty: Played) -> None:
    """Twelve teams share two slices: most have none of their own."""
    queues = [
        each["manifest"]
        for each in synthesis.stack("twelve-teams-two-slices", "queues")["resource"]["kubernetes_manifest"].values()
        if each["manifest"]["kind"] == "ClusterQueue"
    ]
    resources = [
        {"type": "kubernetes_manifest", "mode": "managed", "instances": [{"attributes": {"manifest": {"value": each}}}]}
        for each in queues
    ]
    state = json.dumps({"resources": resources}).encode()
    empty.cloud.put_blob("states", "queues/default.tfstate", state, {}, keep_old=True)
    (row,) = by_stack(empty.cloud, "states")
    assert len(row.facts) == 12
    assert sum("16 chips of tpu" in fact for fact in row.facts) == 2
    assert not any("0 cpu" in fact or "0 memory" in fact or "0 chips" in fact for fact in row.facts), row.facts


@whole
def test_a_deployment_that_fails_says_why_and_the_exit_code_is_1(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with world_in(tmp_path / "w") as world:
        world.cloud.put(
            "google_compute_network", "projects/my-project/global/networks/tpu-network", {"name": "tpu-network"}
        )
        assert show(world).play(keep=False) == 1
    told = capfd.readouterr().out
    assert "foundation       stopped" in told
    assert "409: The resource 'projects/my-project/global/networks/tpu-network' already exists, alreadyExists" in told
    assert "with google_compute_network.network," in told
    assert "Submit hello-tpu" not in told, "nothing goes on after that"


@whole
def test_drift_is_found_by_the_second_deployment(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with world_in(tmp_path / "w") as world:
        played = show(world)
        assert played._deploy()
        world.cloud.change(
            "google_container_node_pool",
            f"{CLUSTER}/nodePools/cpu",
            lambda values: values["autoscaling"][0].update(max_node_count=9),
        )
        played._deploy_again()
    assert played.problems[0].startswith("cluster: the second deployment changes something")
    assert "~ max_node_count  = 9 -> 4" in capfd.readouterr().out


@whole
def test_the_whole_of_it_goes_well_also_after_one_that_was_killed_half_way(tmp_path: Path) -> None:
    folder = tmp_path / "with spaces"
    command = [sys.executable, "-m", "cli", "rehearse", "--folder", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ}) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith("  foundation"):
                break
        running.send_signal(signal.SIGKILL)
    left = [int(note.name) for note in (folder / "processes").iterdir()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in (
        "Rehearsing tpu-cluster in project my-project",
        "tpu: 2 slices x 4 hosts x 4 chips = 32 chips (tpu-v6e-slice 4x4, ct6e-standard-4t, us-east5-b, on-demand)",
        "admitted: slice, 4 pods, on node pool tpu-0 in us-east5-b (4 hosts x 4 chips)",
        "queues           refused",
        "refused, nothing deleted: Instance cannot be destroyed",
        "nothing is left but the project, its enabled APIs and the state bucket",
    ):
        assert line in done.stdout
    assert done.stdout.count("no changes\n") == 5
    assert "NOT OK" not in done.stdout
    assert [pid for pid in left if processes.started(pid)] == []
    assert processes.recorded(folder / "processes") == []


def of_this(folder: Path) -> list[str]:
    """The command lines of processes that name the folder, or a file in it."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(folder) in line]


@whole
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_a_signal_ends_everything(tmp_path: Path, number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-m", "cli", "rehearse", "--folder", str(tmp_path / "w")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith("  foundation"):
                break
        running.send_signal(number)
        _, errors = running.communicate()
    assert (running.returncode, errors) == (code, "interrupted\n")
    while of_this(tmp_path):
        time.sleep(0.05)  # the time limit of tests says when it is too long


@whole
def test_what_is_kept_can_be_looked_at_with_the_commands_it_prints(tmp_path: Path) -> None:
    folder = tmp_path / "with spaces"
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, "-m", "cli", "rehearse", "--keep", "--folder", str(folder)]
        os.chdir(ROOT)
        os.execv(sys.executable, command)
    shown = ""
    while "Enter ends it." not in shown:
        shown += os.read(terminal, 4096).decode()
    printed = shown.replace("\r", "").split("meet the played cloud:\n")[1].split("Enter ends it.")[0]
    # Whoever types them approves the plan, too.
    typed = printed.replace("--skip-provider-lock", "--skip-provider-lock --auto-approve")
    done = subprocess.run(["sh", "-ec", typed], cwd=tmp_path, capture_output=True, text=True, check=False)
    os.write(terminal, b"\n")
    with contextlib.suppress(OSError):  # Linux's way to say that the other end is closed
        while os.read(terminal, 4096):
            pass
    os.waitpid(pid, 0)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No changes." in done.stdout
    assert '"ClusterQueueList"' in done.stdout or '"kind":"ClusterQueueList"' in done.stdout.replace(" ", "")


@whole
@pytest.mark.skipif(shutil.which("tofu") is None, reason="tofu is not on the PATH")
def test_opentofu_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERRAFORM_BINARY_NAME", "tofu")
    assert main(["rehearse", "--folder", str(tmp_path / "w")]) == 0
