"""`tpuenv jobs`, `logs` and `cancel`, as they are typed, with the fake cluster over HTTP, and who may do what."""

from __future__ import annotations

import copy
import itertools

import pytest

from manifests.images import reference
from manifests.recipes import FOLDER
from rehearsal.google.artifact_registry_api import push
from rehearsal.kubernetes.objects import KIND
from tests.rehearsal.job_sets import job_set
from tests.tpuenv.jobs.conftest import Ground, act_as, jobsets
from tpuenv.main import main

TEAM = "tpu-training"
Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("at_once", "one_slice_settings")


def test_jobs_lists_each_with_its_state_its_place_and_why_it_waits(ground: Ground, capsys: Capture) -> None:
    assert main(["jobs"]) == 0
    assert capsys.readouterr().out == "There are no jobs.\n"
    for name in ("one", "two", "three", "four"):
        ground.api.create(job_set(name))
    ground.end("one")
    ground.end("two", "Failed", message="too many restarts")
    ground.patch("Pod", ground.pods()[-1]["metadata"]["name"], {"status": {"phase": "Pending", "conditions": []}})
    ground.api.create(job_set("five"))
    assert main(["jobs", "--team", TEAM]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == ["NAME", "TEAM", "RECIPE", "STATE", "QUEUE", "SLICES", "AGE"]
    rows = {line.split()[0]: " ".join(line.split()[3:-1]) for line in lines if not line.startswith(" ")}
    assert rows == {
        "one": "succeeded - 1 of tpu",
        "two": "failed - 1 of tpu",
        "three": "running on 4 hosts - 1 of tpu",
        "four": "starting (3 of 4 hosts run) - 1 of tpu",
        "five": "waiting 1 1",
    }
    below = {line.split()[0]: after for line, after in itertools.pairwise(lines)}
    assert below["two"] == "  too many restarts"
    assert "in use by jobs that this one may not stop" in below["five"]


def test_jobs_of_teams_that_may_not_be_read_hide_no_others(
    fleet: Ground, capsys: Capture, monkeypatch: pytest.MonkeyPatch, fleet_settings: None
) -> None:
    manifest = job_set()
    manifest["metadata"]["namespace"] = "research"
    fleet.api.create(manifest)
    act_as("alice@example.com", monkeypatch)
    assert main(["jobs"]) == 0
    printed = capsys.readouterr()
    assert "train" in printed.out
    assert "note: the jobs of team serving may not be read" in printed.err
    act_as("bob@example.com", monkeypatch)
    assert main(["jobs", "--team", "research"]) == 1
    assert "permission: bob@example.com may not list workloads in namespace research" in capsys.readouterr().err


@pytest.mark.usefixtures("fleet_settings")
def test_a_member_submits_lists_and_cancels_jobs_of_the_own_team(
    fleet: Ground, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(fleet.fake.cloud, reference(fleet.environment, FOLDER / "hello-tpu"))
    act_as("alice@example.com", monkeypatch)
    words = ["hello-tpu", "--team", "research", "--group", "dev", "--name", "mine"]
    assert main(["submit", *words, "--detach"]) == 0
    assert main(["jobs", "--team", "research"]) == 0
    assert "mine  research  hello-tpu  running on 4 hosts" in capsys.readouterr().out
    assert main(["logs", "mine"]) == 0
    assert main(["cancel", "mine"]) == 0
    assert jobsets(fleet, "research") == []
    assert main(["submit", "hello-tpu", "--team", "serving", "--group", "dev", "--detach"]) == 1
    assert "permission: alice@example.com may not create JobSet serving/hello-tpu-" in capsys.readouterr().err


@pytest.mark.usefixtures("fleet_settings")
def test_a_member_starts_servers_with_their_address_on_the_group_that_suits_them_and_cancels_both(
    fleet: Ground, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    act_as("alice@example.com", monkeypatch)
    assert main(["submit", "saxml", "--team", "research", "--slices", "2", "--name", "cell", "--detach"]) == 0
    services = fleet.api.resource("v1", "Service")
    assert [item["metadata"]["name"] for item in fleet.api.all(services, "research")] == ["cell-http"]
    capsys.readouterr()
    assert main(["jobs", "--team", "research"]) == 0
    assert "2 of burst" in capsys.readouterr().out, "the only group of v5e"
    assert main(["cancel", "cell"]) == 0
    assert fleet.api.all(services, "research") == jobsets(fleet, "research") == []
    assert main(["submit", "vllm", "--team", "research", "--group", "dev", "--detach"]) == 2
    assert "recipe vllm runs on slices of 1 host; a slice of pool group dev (v6e-16) has 4" in capsys.readouterr().err
    assert jobsets(fleet, "research") == []


@pytest.mark.parametrize("command", ["logs", "cancel"])
def test_a_job_that_does_not_exist_is_not_taken_for_another(command: str, ground: Ground, capsys: Capture) -> None:
    assert main([command, "train"]) == 2
    assert "there is no job 'train', nor any other of tpu-training" in capsys.readouterr().err
    ground.api.create(job_set())
    assert main([command, "trian"]) == 2
    assert "there is no job 'trian'; did you mean 'train'?" in capsys.readouterr().err
    assert len(jobsets(ground)) == 1


def test_logs_prints_what_a_host_has_logged(ground: Ground, capsys: Capture) -> None:
    ground.api.create(job_set())
    ground.log(ground.pods()[2]["metadata"]["name"], "a", "\x1b[2J b")
    assert main(["logs", "train", "--host", "2"]) == 0
    assert capsys.readouterr().out == "a\n\\x1b[2J b\n"
    assert main(["logs", "train", "--host", "4"]) == 2
    assert "no slice 0, host 4; it has slice 0 with hosts 0 to 3" in capsys.readouterr().err


def test_a_job_on_the_cpu_pool_is_run_and_followed_too(ground: Ground, capsys: Capture) -> None:
    push(ground.fake.cloud, reference(ground.environment, FOLDER / "copy-data"))
    assert main(["submit", "copy-data", "--set", "source=gs://a/b", "--name", "copy", "--detach"]) == 0
    (pod,) = ground.pods()
    older = copy.deepcopy(pod)
    older["status"]["phase"] = "Failed"
    older["metadata"] |= {"name": "copy-zzzzz", "creationTimestamp": "2025-01-01T00:00:00Z"}
    ground.fake.cloud.put(KIND, f"{ground.api.cluster}|v1|Pod|{TEAM}|copy-zzzzz", older)
    ground.log(pod["metadata"]["name"], "copied")
    assert main(["jobs"]) == 0
    assert "copy-data  running on 1 host" in capsys.readouterr().out
    ground.patch("Job", "copy", {"status": {"conditions": [{"type": "Complete", "status": "True"}]}})
    assert main(["logs", "copy", "--follow"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "copied\n"
    assert "Job tpu-training/copy succeeded" in printed.err


def test_logs_of_another_part_are_those_of_its_pods(ground: Ground, capsys: Capture) -> None:
    manifest = job_set()
    upload = copy.deepcopy(manifest["spec"]["replicatedJobs"][0])
    upload["name"] = "upload"
    spec = upload["template"]["spec"]
    spec["parallelism"] = spec["completions"] = 1
    del spec["template"]["spec"]["nodeSelector"]
    spec["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
    manifest["spec"]["replicatedJobs"].append(upload)
    ground.api.create(manifest)
    ground.log(ground.pods()[4]["metadata"]["name"], "uploaded")
    assert main(["logs", "train", "--part", "upload"]) == 0
    assert capsys.readouterr().out == "uploaded\n"
    assert main(["logs", "train", "--part", "download"]) == 2
    said = "has no part download, slice 0, host 0; it has slice 0 with hosts 0 to 3; parts: slice, upload\n"
    assert said in capsys.readouterr().err
    assert main(["jobs"]) == 0
    assert "running on 4 hosts  -      1 of tpu" in capsys.readouterr().out


def test_logs_of_a_job_that_waits_say_why_there_are_none(ground: Ground, capsys: Capture) -> None:
    for name in ("one", "two", "train"):
        ground.api.create(job_set(name))
    assert main(["logs", "train"]) == 1
    assert "has logged nothing: it is waiting: " in capsys.readouterr().err


def test_logs_follow_until_the_job_ends(ground: Ground, capsys: Capture) -> None:
    ground.api.create(job_set())
    ground.log(ground.pods()[0]["metadata"]["name"], "step 1")
    ground.at_reads("train", lambda: None, lambda: ground.end("train", "Failed"))
    assert main(["logs", "train", "--follow"]) == 1
    assert capsys.readouterr().out == "step 1\n"


def test_cancel_deletes_several_jobs_and_one_that_is_not_there_keeps_no_other(ground: Ground, capsys: Capture) -> None:
    for name in ("one", "two", "three"):
        ground.api.create(job_set(name))
    assert main(["cancel", "one", "tow", "three", "one"]) == 2
    shown = capsys.readouterr()
    assert [line.partition(": ")[0] for line in shown.out.splitlines()] == [
        "Deleted JobSet tpu-training/one",
        "Deleted JobSet tpu-training/three",
    ]
    assert shown.err.splitlines()[-1].endswith("there is no job 'tow'; did you mean 'two'?")
    assert [job["metadata"]["name"] for job in jobsets(ground)] == ["two"]


def test_cancel_deletes_the_job_and_the_next_one_starts(ground: Ground, capsys: Capture) -> None:
    for name in ("one", "two", "three"):
        ground.api.create(job_set(name))
    assert main(["cancel", "one"]) == 0
    assert capsys.readouterr().out.startswith("Deleted JobSet tpu-training/one: it was running on 4 hosts, ")
    assert main(["jobs"]) == 0
    assert "waiting" not in capsys.readouterr().out
