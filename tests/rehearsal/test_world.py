"""A rehearsal touches nothing real, nothing real meets it, and what a killed one leaves behind is ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import quote

import pytest

from environment.services import SERVICES
from rehearsal import started_processes
from rehearsal.google.permissions import TOKEN
from rehearsal.work_folder import CannotStart
from rehearsal.world import Lost, Project, World
from tests.rehearsal.fake import CACHE, ROOT
from vocabulary import resource_types
from vocabulary.resource_types import DamagedFacts

pytestmark = pytest.mark.slow  # most start a world, or several

needs_terraform = pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH")

PROJECT = Project(
    id_="my-project", number="123456789012", region="us-east5", state_bucket="my-state", services=list(SERVICES)
)
CONFIG = {
    "terraform": {"required_providers": {"google": {"source": "hashicorp/google", "version": "6.50.0"}}},
    "provider": {"google": {"project": "my-project"}},
    "resource": {"google_compute_network": {"n": {"name": "net"}}},
}

SECRETS = {
    "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json",
    "GOOGLE_CREDENTIALS": "{}",
    "GOOGLE_OAUTH_ACCESS_TOKEN": "real-token",
    "GOOGLE_PROJECT": "real-project",
    "CLOUDSDK_CONFIG": "/home/me/.config/gcloud",
    "KUBECONFIG": "/home/me/.kube/config",
    "KUBE_TOKEN": "real-token",
    "TF_VAR_secret": "x",
    "TF_CLI_ARGS": "-refresh=false",
    "TF_DATA_DIR": "/tmp/shared",
    "TF_WORKSPACE": "production",
    "TF_PLUGIN_CACHE_DIR": "/home/me/plugins",
    "TF_REATTACH_PROVIDERS": "{}",
    "AWS_SECRET_ACCESS_KEY": "x",
    "HTTPS_PROXY": "http://proxy:3128",
    "SSH_AUTH_SOCK": "/tmp/agent",
}


def world_in(folder: Path, **settings: str) -> World:
    return World(folder=folder, project=PROJECT, cache=CACHE, settings=settings)


def test_credentials_of_the_process_do_not_reach_the_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    with world_in(tmp_path / "w", TPU_TYPE="v6e-16") as world:
        environment = world.environment(DESTROY_DATA="true")
    assert not {value for value in SECRETS.values() if len(value) > 2} & set(environment.values())
    assert not {"AWS_SECRET_ACCESS_KEY", "TF_DATA_DIR", "TF_VAR_secret", "CLOUDSDK_CONFIG"} & environment.keys()
    assert environment["HOME"].startswith(str(tmp_path))
    assert environment["GOOGLE_OAUTH_ACCESS_TOKEN"] == TOKEN
    assert (environment["TPU_TYPE"], environment["DESTROY_DATA"]) == ("v6e-16", "true")


@needs_terraform
def test_a_real_terraform_in_the_same_tree_does_not_meet_the_providers(tmp_path: Path) -> None:
    """No lock file, no plugin, no mirror is left for it: it would go to the registry, which the empty configuration
    forbids.
    """
    with world_in(tmp_path / "w") as world:
        folder = world.output / "stacks" / "a"
        folder.mkdir(parents=True)
        (folder / "main.tf.json").write_text(json.dumps(CONFIG))
        subprocess.run(
            [str(world.terraform), "init"], cwd=folder, env=world.environment(), check=True, capture_output=True
        )
        assert not (folder / ".terraform.lock.hcl").exists()
        assert not (folder / ".terraform" / "providers").exists()
        outside = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TF_CLI_CONFIG_FILE": str(world.folder / "terraform.rc"),
        }
        done = subprocess.run(
            ["terraform", "init", "-no-color"], cwd=folder, env=outside, capture_output=True, text=True, check=False
        )
    assert done.returncode != 0
    assert "hashicorp/google" in done.stderr


@needs_terraform
def test_without_its_variable_nothing_of_the_rehearsal_works(tmp_path: Path) -> None:
    with world_in(tmp_path / "w") as world:
        folder = world.output / "stacks" / "a"
        folder.mkdir(parents=True)
        (folder / "main.tf.json").write_text(json.dumps(CONFIG))
        environment = world.environment()
        del environment["TF_REATTACH_PROVIDERS"]
        done = subprocess.run(
            ["terraform", "init", "-no-color"], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    assert done.returncode != 0, "no provider may be had from anywhere else"


def test_the_tools_find_this_python_first(tmp_path: Path) -> None:
    with world_in(tmp_path / "w") as world:
        assert world.environment()["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)


def test_two_rehearsals_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        world_in(tmp_path / "w"),
        pytest.raises(CannotStart, match="another rehearsal is running in"),
        world_in(tmp_path / "w"),
    ):
        pass
    with world_in(tmp_path / "w"):
        pass


def test_the_server_goes_with_the_rehearsal(tmp_path: Path) -> None:
    with world_in(tmp_path / "w") as world:
        assert len(started_processes.recorded(world.processes)) == 1
    assert started_processes.recorded(world.processes) == []


HALF_WAY = """
import subprocess, sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from rehearsal import started_processes
from rehearsal.cloud import Cloud
from tests.rehearsal.test_world import world_in
world = world_in(Path({folder!r}))
world.__enter__()
world.cloud.put("google_compute_network", "left/behind", {{}})
hook = subprocess.Popen(["sleep", "300"])
started_processes.record(world.processes, hook.pid)
print(hook.pid, flush=True)
time.sleep(300)
"""


def test_what_a_killed_rehearsal_leaves_is_ended_and_the_next_starts_empty(tmp_path: Path) -> None:
    program = HALF_WAY.format(root=str(ROOT), folder=str(tmp_path / "w"))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT) as running:
        assert running.stdout is not None
        hook = int(running.stdout.readline())
        left = [int(note.name) for note in (tmp_path / "w" / "processes").iterdir()]
        for pid in {*left, running.pid} - {hook}:
            os.kill(pid, signal.SIGKILL)
    assert hook in left
    assert started_processes.started(hook)
    with world_in(tmp_path / "w") as world:
        assert not started_processes.started(hook)
        assert not [pid for pid in left if started_processes.started(pid)]
        assert world.cloud.get("google_compute_network", "left/behind") is None


def test_the_server_and_all_that_is_at_work_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    program = HALF_WAY.format(root=str(ROOT), folder=str(tmp_path / "w"))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT) as running:
        assert running.stdout is not None
        hook = int(running.stdout.readline())
        (server,) = [int(note.name) for note in (tmp_path / "w" / "processes").iterdir() if int(note.name) != hook]
        running.send_signal(signal.SIGKILL)
    while started_processes.started(server) or started_processes.started(hook):
        time.sleep(0.05)  # the time limit of tests says when it is too long


def source(environment: Path) -> subprocess.CompletedProcess[str]:
    """In a shell of its own, which prints whether Terraform would meet the fake cloud."""
    script = f". {quote(str(environment))} && echo fine; echo [$TF_INPUT]"
    settings = {"PATH": os.defpath}
    return subprocess.run(["sh", "-c", script], env=settings, capture_output=True, text=True, check=False)


def test_the_environment_to_source_is_good_as_long_as_the_rehearsal(tmp_path: Path) -> None:
    with world_in(tmp_path / "with spaces") as world:
        path = world.write_environment()
        assert source(path).stdout == "fine\n[0]\n"
        kept = path.read_text()
    assert not path.exists()
    path.write_text(kept)  # as a rehearsal leaves it that was killed
    done = source(path)
    assert done.stdout == "[]\n"
    assert done.stderr == "That rehearsal has ended; start another: tpuenv rehearse --keep\n"


def test_a_process_id_that_belongs_to_somebody_else_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "30"]) as somebody:
        (tmp_path / "processes").mkdir()
        (tmp_path / "processes" / str(somebody.pid)).write_text("12345")
        assert started_processes.end(tmp_path / "processes") == 0
        assert somebody.poll() is None
        somebody.kill()


@needs_terraform
def test_terraform_is_written_down_while_it_runs(tmp_path: Path) -> None:
    with world_in(tmp_path / "with spaces") as world:
        done = subprocess.run(
            [str(world.terraform), "version"], env=world.environment(), capture_output=True, text=True, check=True
        )
        assert "v" in done.stdout
        assert len(list(world.processes.iterdir())) == 2


# Not a shell: one whose parent ignores interrupts, as a script's `make test &` does, cannot hear them. Terraform can.
STOPPED_IN_ORDER = """\
import os, signal, sys, time

def stop(number, frame):
    os.write(1, b"stopping\\n")
    sys.exit(1)

signal.signal(signal.SIGINT, stop)
os.write(1, b"started\\n")  # print would be interrupted in the middle, and not be called again meanwhile
time.sleep(20)
sys.exit(3)
"""


def starting(interrupts: signal.Handlers, *command: str, cwd: Path) -> subprocess.Popen[str]:
    """A process that inherits that of interrupts; how these tests were started does not matter."""
    before = signal.signal(signal.SIGINT, interrupts)
    try:
        return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True, start_new_session=True)
    finally:
        signal.signal(signal.SIGINT, before)


@needs_terraform
@pytest.mark.parametrize("parent", [signal.SIG_DFL, signal.SIG_IGN], ids=["hears", "ignores"])
def test_an_interrupted_terraform_reads_as_stopped_after_an_earlier_success(
    tmp_path: Path, parent: signal.Handlers
) -> None:
    with world_in(tmp_path / "w") as world:
        program = tmp_path / "program.py"
        program.write_text(STOPPED_IN_ORDER)
        words = f"#!/bin/sh\nexec {quote(sys.executable)} {quote(str(program))}\n"
        (world.folder / "terraform-recorded").write_text(words)
        stack = tmp_path / "queues"
        stack.mkdir()
        code = world.logs / "queues.code"
        code.write_text("0")
        with starting(parent, str(world.terraform), "destroy", cwd=stack) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == "started\n"
            assert not code.exists()
            os.killpg(running.pid, signal.SIGINT)
            assert running.stdout.read() == "stopping\n"
        assert running.returncode == 1
        assert code.read_text() == "1"
        assert (world.logs / "queues").read_text() == "started\nstopping\n"


@pytest.mark.parametrize("beside", ["rehearsal", ".tpuenv-rehearsal"])
def test_a_folder_that_holds_one_of_the_rehearsals_names_is_left_alone(tmp_path: Path, beside: str) -> None:
    """As this checkout does."""
    (tmp_path / "precious" / beside).mkdir(parents=True)
    (tmp_path / "precious" / "thesis.txt").write_text("all of it")
    with pytest.raises(CannotStart, match="holds files that no rehearsal wrote"), world_in(tmp_path / "precious"):
        pass
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "all of it"
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("all of it")
    with (
        pytest.raises(CannotStart, match="holds files that no rehearsal wrote"),
        world_in(tmp_path / "precious"),
    ):
        pass
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "all of it"


def test_a_folder_that_is_known_to_be_ours_needs_no_mark(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "cloud.db").write_text("of a version that knew no mark")
    with World(folder=tmp_path / "w", project=PROJECT, cache=CACHE, ours=True) as world:
        assert world.cloud.snapshot()


def test_a_program_that_is_no_terraform_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    false = shutil.which("false")
    assert false is not None
    monkeypatch.setenv("TERRAFORM_BINARY_NAME", false)
    with (
        pytest.raises(CannotStart, match=r"TERRAFORM_BINARY_NAME: '.*false' is no Terraform"),
        world_in(tmp_path / "w"),
    ):
        pass


def test_a_missing_folder_for_temporary_files_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    with pytest.raises(CannotStart, match=r"TMPDIR: '.*gone' is not a folder"), world_in(tmp_path / "w"):
        pass
    assert not (tmp_path / "w").exists()


def test_a_damaged_file_of_a_resource_type_is_reported_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.json").write_text("{")
    monkeypatch.setattr(resource_types, "FOLDER", tmp_path)
    with pytest.raises(DamagedFacts, match=r"^vocabulary/resource_types/x\.json: "), world_in(tmp_path / "w"):
        pass
    assert not (tmp_path / "w").exists()


def test_a_file_in_place_of_the_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match="file cannot be used"), world_in(tmp_path / "file"):
        pass
    with pytest.raises(CannotStart, match="below cannot be used"), world_in(tmp_path / "file" / "below"):
        pass


def test_a_server_that_died_is_noticed_with_its_last_words(tmp_path: Path) -> None:
    with world_in(tmp_path / "w") as world:
        world.check()
        assert world._server is not None
        world._server.kill()
        world._server.wait()
        with pytest.raises(Lost, match="server ended with exit code -9"):
            world.check()
