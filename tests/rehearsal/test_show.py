"""`tpuenv rehearse`: what a person meets before it starts, and the whole of it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import environment
from rehearsal import started_processes
from rehearsal.google.addresses import POOL
from rehearsal.inventory import by_stack
from rehearsal.world import Project, World
from tests.rehearsal.conftest import FLEET
from tests.rehearsal.deployed import api_of, deploy, world_of
from tests.rehearsal.fake import CACHE, ROOT, FakeCloud
from tests.rehearsal.ground import Ground, synthesize
from tests.rehearsal.states import write_states
from tests.synthesis import CASES, Synthesis
from tpuenv.main import main
from tpuenv.rehearsals.cdktf_in_world import Run, StackRun
from tpuenv.rehearsals.whole_environment import EnvironmentRehearsal

CLUSTER = "projects/my-project/locations/us-east5/clusters/tpu-cluster"

whole = pytest.mark.slow


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROJECT_ID", "my-project")


def test_wrong_settings_are_reported_in_a_line_each_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TPU_TYPE", "v6e-17")
    assert main(["rehearse", "--folder", str(tmp_path / "w")]) == 2
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    assert printed.err.startswith("TPU_TYPE: unknown TPU type 'v6e-17'; did you mean 'v6e-16'?")
    assert not (tmp_path / "w").exists()


def test_a_folder_in_use_is_reported_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = Project(id_="my-project", number="1", region="us-east5", state_bucket="s", services=[])
    with World(folder=tmp_path / "w", project=project, cache=CACHE):
        assert main(["rehearse", "--folder", str(tmp_path / "w")]) == 1
    assert "another rehearsal is running in" in capsys.readouterr().err


def test_a_missing_terraform_is_reported_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERRAFORM_BINARY_NAME", "no-such-terraform")
    assert main(["rehearse", "--folder", str(tmp_path / "w")]) == 1
    assert "no-such-terraform: not found on the PATH; install Terraform 1.6" in capsys.readouterr().err


def test_help_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", "--help"]) == 0
    printed = capsys.readouterr().out
    assert "no account, no credentials, no network" in flat(printed)


def world_in(folder: Path) -> World:
    return world_of(environment.load(ROOT / "vars.env", {"PROJECT_ID": "my-project"}), folder, PROJECT_ID="my-project")


def flat(text: str) -> str:
    """Wherever its lines were broken."""
    return " ".join(text.split())


def show(world: World) -> EnvironmentRehearsal:
    return EnvironmentRehearsal(world, environment.load(ROOT / "vars.env", {"PROJECT_ID": "my-project"}))


def node_pools(fake: FakeCloud, output: Path) -> list[str]:
    """What the report says of the stack of the slices."""
    (row,) = [row for row in by_stack(fake.cloud, write_states(fake, output)) if row.stack == "tpu-node-pools"]
    return row.facts


def test_what_exists_shows_each_group_of_the_fleet_with_its_capacity_and_in_its_order(
    fleet: FakeCloud, synthesis: Synthesis
) -> None:
    assert node_pools(fleet, synthesis.folder(FLEET)) == [
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
    assert node_pools(fleet, synthesis.folder(FLEET))[-1].endswith("us-east5-a, queued, autoscaled)")


def test_what_a_team_has_no_quota_of_is_left_out(synthesis: Synthesis, empty: FakeCloud) -> None:
    """Twelve teams share two slices: most have none of their own."""
    queues = [
        item["manifest"]
        for item in synthesis.stack("twelve-teams-two-slices", "queues")["resource"]["kubernetes_manifest"].values()
        if item["manifest"]["kind"] == "ClusterQueue"
    ]
    resources = [
        {
            "type": "kubernetes_manifest",
            "mode": "managed",
            "instances": [{"attributes": {"manifest": {"value": queue}}}],
        }
        for queue in queues
    ]
    state = json.dumps({"resources": resources}).encode()
    empty.cloud.put_blob("states", "queues/default.tfstate", state, {}, keep_old=True)
    (row,) = by_stack(empty.cloud, "states")
    assert sum(fact.startswith("ClusterQueue ") for fact in row.facts) == 12
    assert sum("16 chips of tpu" in fact for fact in row.facts) == 2
    assert not any("0 cpu" in fact or "0 memory" in fact or "0 chips" in fact for fact in row.facts), row.facts


def shown_of(fake: FakeCloud, configured: environment.Environment) -> EnvironmentRehearsal:
    """The parts of a rehearsal of what is deployed in this process."""
    write_states(fake, fake.folder / "cdktf.out")
    world = world_of(configured, fake.folder)
    world._announced = {"address": fake.place.address}
    return EnvironmentRehearsal(world, configured)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case == "default" else pytest.mark.slow) for case in CASES]
)
def test_of_every_case_what_exists_and_every_teams_verdict_fit_80_columns(
    case: str, synthesis: Synthesis, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configured = synthesis.environment(case)
    fake = deploy(synthesis.folder(case), tmp_path / "world")
    shown = shown_of(fake, configured)
    shown._what_exists()
    shown._submit()
    assert shown.summary() == 0
    fake.close()
    printed = capsys.readouterr()
    assert printed.err == ""
    assert [line for line in printed.out.splitlines() if len(line) > 80] == []
    exists, _, verdicts = flat(printed.out).partition("Submit every recipe for every team")
    for team in configured.teams:
        assert re.search(rf"members of [^:]*\b{team.name}\b", exists)
        assert re.search(rf"\b{team.name}\b[^:]*: (?:admitted|waits): ", verdicts)
    assert exists.count("borrowing ") == exists.count("lending ")
    assert ("borrowing " in exists) == ("fair sharing" in exists) == (len(configured.teams) > 1)
    for warning in configured.warnings:
        assert flat(warning) in verdicts, "the end repeats what was said above"


@pytest.mark.slow
def test_no_two_teams_jobs_are_on_the_same_hosts(
    fleet: FakeCloud, synthesis: Synthesis, capsys: pytest.CaptureFixture[str]
) -> None:
    shown_of(fleet, synthesis.environment(FLEET))._submit()
    printed = flat(capsys.readouterr().out)
    parts = re.split(r"hello-tpu on 1 slice of pool group (\S+)|\S+ on \d+ slices of pool group", printed)[1:]
    pools = {
        group: re.findall(r"on node pool (\S+) in", text)
        for group, text in zip(parts[::2], parts[1::2], strict=True)
        if group
    }
    assert pools == {
        "pretrain": ["pretrain-0"],
        "dev": ["dev-0", "dev-1", "dev-2"],
        "serve": ["serve-0", "serve-1"],
        "burst": ["burst-0", "burst-1"],
    }


@pytest.mark.slow
def test_a_team_whose_queue_is_on_hold_is_a_problem_and_the_others_have_their_verdicts(
    fleet: FakeCloud, synthesis: Synthesis, capsys: pytest.CaptureFixture[str]
) -> None:
    api = api_of(fleet)
    (queue,) = [
        queue
        for queue in api.all(api.resource("kueue.x-k8s.io/v1beta2", "ClusterQueue"))
        if queue["metadata"]["name"] == "serving"
    ]
    queue["spec"]["stopPolicy"] = "Hold"
    api.store(queue)
    shown = shown_of(fleet, synthesis.environment(FLEET))
    shown._submit()
    held = "is not admitted: waits: ClusterQueue serving is on hold: "
    starts = [problem.partition("nothing starts")[0] for problem in shown.problems if "hello-tpu on 1" in problem]
    assert starts == [f"serving: hello-tpu on 1 slice of pool group {group} {held}" for group in ("dev", "serve")]
    printed = flat(capsys.readouterr().out)
    assert "research: admitted: " in printed and "students: admitted: " in printed


def test_warnings_are_printed_once_above_and_once_at_the_end(
    fleet: FakeCloud, synthesis: Synthesis, capsys: pytest.CaptureFixture[str]
) -> None:
    configured = dataclasses.replace(synthesis.environment(FLEET), warnings=("ZONE: may be wrong",))
    shown = shown_of(fleet, configured)
    shown._stack_done(StackRun(name="cluster", code=0, text="Warning: one\n\nApply complete! Resources: 1 added.\n"))
    shown._stack_done(StackRun(name="cluster", code=0, text="Warning: one\n\nNo changes.\n"))
    shown.wrong("something")
    assert shown.summary() == 1
    printed = capsys.readouterr()
    above, _, end = printed.out.partition("Summary")
    assert above.count("warning: ZONE: may be wrong\n") == above.count("warning: cluster: Terraform: one\n") == 1
    assert end.endswith("\n2 warnings:\n  ZONE: may be wrong\n  cluster: Terraform: one\n")
    assert printed.err == "\n1 problem:\n  something\n"


REFUSED = """\
Error: Instance cannot be destroyed

  on cdk.tf.json line 87, in resource.google_compute_network.network:
  87:       }

Resource google_compute_network.network has lifecycle.prevent_destroy set,
but the plan calls for this resource to be destroyed.
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (REFUSED, "foundation: google_compute_network.network is protected until DELETION_PROTECTION=false"),
        ("Error: Error creating Network: Error 409\n\n  with a.b,\n", "foundation: Error creating Network: Error 409"),
    ],
)
def test_the_end_names_the_stack_that_failed_and_the_cause(
    text: str, cause: str, fleet: FakeCloud, synthesis: Synthesis, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = shown_of(fleet, synthesis.environment(FLEET))
    shown.failed(Run(code=1, text="", stacks=[StackRun(name="foundation", code=1, text=text)]), "the deployment failed")
    shown.times.append(("Deploy", 1.0, False))
    assert shown.summary() == 1
    assert flat(capsys.readouterr().err) == f"1 problem: the deployment failed: {cause}"


@whole
def test_a_deployment_that_fails_says_why_and_the_exit_code_is_1(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with world_in(tmp_path / "w") as world:
        world.cloud.put(
            "google_compute_network", "projects/my-project/global/networks/tpu-network", {"name": "tpu-network"}
        )
        assert show(world).run(keep=False) == 1
    printed = capfd.readouterr().out
    assert "foundation       stopped" in printed
    printed = flat(printed)
    assert (
        "409: The resource 'projects/my-project/global/networks/tpu-network' already exists, alreadyExists" in printed
    )
    assert "with google_compute_network.network," in printed
    assert "Submit every recipe" not in printed, "nothing goes on after that"


@whole
def test_drift_is_reported_by_the_second_deployment(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with world_in(tmp_path / "w") as world:
        synthesize(world)
        Ground(world=world).deploy()
        fake = show(world)
        world.cloud.change(
            "google_container_node_pool",
            f"{CLUSTER}/nodePools/cpu",
            lambda values: values["autoscaling"][0].update(max_node_count=9),
        )
        fake._deploy_again()
    assert fake.problems[0].startswith("cluster: the second deployment changes something")
    assert "~ max_node_count  = 9 -> 4" in capfd.readouterr().out


@whole
@pytest.mark.killed
def test_the_whole_of_it_goes_well_also_after_one_that_was_killed_half_way(tmp_path: Path) -> None:
    folder = tmp_path / "with spaces"
    command = [sys.executable, "-m", "tpuenv", "rehearse", "--folder", str(folder)]
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
        "tpu-training: admitted: slice, 4 pods, on node pool tpu-0 in us-east5-b (hosts 0 to 3, 4 chips each)",
        "tpu-training on tpu: hosts: 4 (simulated), chips: 16 (simulated)",
        "as the account of tpu-training: its bucket can be written, read and deleted in; 1 other refused",
        "observability refused",
        "nothing deleted: terraform_data.guard of observability is protected until DELETION_PROTECTION=false",
        "nothing is left but the project, its enabled APIs and the state bucket",
    ):
        assert line in flat(done.stdout)
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []
    assert not re.search(r"[\r\033]", done.stdout), "a file gets no colours and no line that moves"
    assert done.stdout.count("no changes\n") == 6
    assert "NOT OK" not in done.stdout
    assert [pid for pid in left if started_processes.started(pid)] == []
    assert started_processes.recorded(folder / "processes") == []


def of_this(folder: Path) -> list[str]:
    """The command lines of processes that name the folder, or a file in it."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(folder) in line]


@whole
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), pytest.param(signal.SIGHUP, 129, marks=pytest.mark.killed)],
    ids=str,
)
def test_a_signal_ends_everything(tmp_path: Path, number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-m", "tpuenv", "rehearse", "--folder", str(tmp_path / "w")]
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
def test_a_kept_world_of_what_is_said_to_exist_can_be_read_with_the_commands_that_were_printed(tmp_path: Path) -> None:
    folder = tmp_path / "with spaces"
    unknown = {"REGION": "us-esat5", "ZONE": "us-esat5-b", "GKE_VERSION": "1.99"}
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, "-m", "tpuenv", "rehearse", "--keep", "--folder", str(folder), "--yes-it-exists"]
        os.chdir(ROOT)
        os.environ.update(unknown, TERM="xterm")
        os.environ.pop("NO_COLOR", None)
        os.execv(sys.executable, command)
    shown = ""
    while "Enter ends it." not in shown:
        shown += os.read(terminal, 4096).decode()
    printed = shown.replace("\r", "").split("reach the fake cloud:\n")[1].split("Enter ends it.")[0]
    # The person who types them approves the plan, too.
    typed = printed.replace("tpuenv deploy", "tpuenv deploy --auto-approve")
    done = subprocess.run(["sh", "-ec", typed], cwd=tmp_path, capture_output=True, text=True, check=False)
    os.write(terminal, b"\n")
    with contextlib.suppress(OSError):  # Linux's way to say that the other end is closed
        while os.read(terminal, 4096):
            pass
    os.waitpid(pid, 0)
    words = flat(re.sub(r"\033\[\d*[mK]", "", shown))
    assert "warning: REGION: 'us-esat5' is not among Google's regions" in words
    assert "tpu-training: admitted" in words
    assert "\033[1mDeploy: cdktf deploy '*'\033[0m\r\n" in shown
    assert re.search(r"\r\033\[K    foundation: \d+ s, \d+ of \d+", shown), "how far it is in a stack, in one line"
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No changes." in done.stdout
    assert "To follow it: tpuenv logs hello-tpu-" in done.stdout
    jobs = done.stdout.partition("NAME")[2]
    assert re.search(r"hello-tpu-\w+ .*running", jobs), "the rehearsal's own jobs leave the slices free"
    assert "maxtext" not in jobs
    assert '"ClusterQueueList"' in done.stdout or '"kind":"ClusterQueueList"' in done.stdout.replace(" ", "")


@whole
@pytest.mark.skipif(shutil.which("tofu") is None, reason="tofu is not on the PATH")
def test_opentofu_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERRAFORM_BINARY_NAME", "tofu")
    assert main(["rehearse", "--folder", str(tmp_path / "w")]) == 0
