"""`tpuenv submit`, `jobs`, `logs` and `cancel`, as they are typed, with the fake cluster over HTTP."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from manifests.images import reference
from manifests.recipes import FOLDER
from rehearsal.google.artifact_registry_api import push
from rehearsal.http_server import Request, Response, json_response
from rehearsal.kubernetes.objects import KIND
from tests.rehearsal.job_sets import job_set
from tests.tpuenv.jobs.conftest import Ground, act_as
from tpuenv.kubernetes.client import Cluster
from tpuenv.main import main

TEAM = "tpu-training"
Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture(autouse=True)
def _project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The settings of the default environment, which the fake cloud holds."""
    monkeypatch.setenv("TPU_TYPE", "v6e-16")


@pytest.fixture
def image(ground: Ground) -> str:
    """The image of hello-tpu, which somebody has built."""
    name = reference(ground.environment, FOLDER / "hello-tpu")
    push(ground.fake.cloud, name)
    return name


def jobsets(ground: Ground, namespace: str = TEAM) -> list[dict[str, object]]:
    return ground.api.all(ground.api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"), namespace)


def test_submit_creates_the_job_by_digest_and_follows_it_to_its_end(
    ground: Ground, image: str, capsys: Capture
) -> None:
    ground.at_reads("try-1", lambda: None, lambda: ground.end("try-1"))
    assert main(["submit", "hello-tpu", "--name", "try-1", "--slices", "2", "--set", "steps=3"]) == 0
    (created,) = jobsets(ground)
    assert f"{image.rpartition(':')[0]}@sha256:" in json.dumps(created)
    assert created["metadata"]["labels"]["tpuenv/recipe"] == "hello-tpu"  # type: ignore[index]
    printed = capsys.readouterr()
    assert "the fake cluster runs no programs" in printed.out
    assert "Created JobSet tpu-training/try-1" in printed.err
    assert "JobSet tpu-training/try-1 succeeded" in printed.err


def test_submit_that_is_detached_ends_at_once_and_says_how_to_follow(
    ground: Ground, image: str, capsys: Capture
) -> None:
    assert main(["submit", "hello-tpu", "--detach"]) == 0
    (created,) = jobsets(ground)
    name = created["metadata"]["name"]  # type: ignore[index]
    assert name.startswith("hello-tpu-")
    printed = capsys.readouterr()
    assert printed.out == f"To follow it: tpuenv logs {name} --team {TEAM} --follow\n"
    assert [line.partition(": ")[0] for line in printed.err.splitlines()[-4:]] == [
        "alerts",
        "queues and jobs",
        "TPUs",
        "log",
    ]
    assert unquote(printed.err.splitlines()[-1]).startswith("log: https://console.cloud.google.com/logs/query;query=")
    assert f'resource.labels.pod_name=~"^{name}-"?project=my-project' in unquote(printed.err)


def test_a_run_whose_image_was_not_built_creates_nothing(ground: Ground, capsys: Capture) -> None:
    assert main(["submit", "hello-tpu"]) == 1
    assert jobsets(ground) == []
    printed = capsys.readouterr().err
    assert "the registry has no us-east5-docker.pkg.dev/my-project/tpu-images/hello-tpu:" in printed
    assert "`tpuenv images --build hello-tpu`" in printed


def test_submit_says_when_nothing_was_compiled_for_the_slice(
    ground: Ground, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tpuenv.compilation.compiler.WORKLOADS", tmp_path / "never installed")
    assert main(["submit", "maxtext"]) == 1, "there is no image either"
    note = "note: not compiled for 1 v6e-16 slice (4x4, 16 chips): `tpuenv fit maxtext`, with the same options, says"
    assert note in capsys.readouterr().err
    assert main(["submit", "hello-tpu"]) == 1
    assert "compiled" not in capsys.readouterr().err, "it has no training step"


def test_a_run_that_the_queues_would_never_admit_creates_nothing(
    ground: Ground, image: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manifests.render.DEFAULT_PRIORITY", "urgent")
    assert main(["submit", "hello-tpu"]) == 1
    assert jobsets(ground) == []
    assert not any(request.startswith("POST") for request in ground.requests)
    printed = capsys.readouterr().err
    assert "would never start" in printed
    assert "no WorkloadPriorityClass 'urgent'" in printed
    assert "Nothing was created" in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hello-tup"], "there is no recipe 'hello-tup'; did you mean 'hello-tpu'?"),
        (["hello-tpu", "--group", "tup"], "--group: there is no pool group 'tup'; did you mean 'tpu'?"),
        (["hello-tpu", "--slices", "3"], "pool group tpu has 2 slices"),
        (["hello-tpu", "--set", "stesp=1"], "did you mean 'steps'?"),
    ],
)
def test_what_is_mistyped_is_refused_before_anything_is_asked_of_google(
    words: list[str], said: str, ground: Ground, capsys: Capture
) -> None:
    assert main(["submit", *words]) == 2
    assert said in capsys.readouterr().err
    assert ground.requests == []


def test_a_name_that_exists_is_refused_and_the_job_that_has_it_stays(
    ground: Ground, image: str, capsys: Capture
) -> None:
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 0
    before = jobsets(ground)
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 1
    assert "JobSet tpu-training/train: it exists already; give another name with --name" in capsys.readouterr().err
    assert jobsets(ground) == before


def refuse(what: str) -> Callable[[Request], Response | None]:
    def answer(request: Request) -> Response | None:
        if f"{request.method} {request.path}".endswith(what):
            return json_response({"message": "no", "reason": "Forbidden"}, status=403)
        return None

    return answer


@pytest.fixture
def two_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """hello-tpu with a ConfigMap before its JobSet."""
    from tpuenv.commands import submit

    rendered = submit.rendered
    config = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config", "namespace": "tpu-training"}}'
    monkeypatch.setattr(submit, "rendered", lambda run: {"config.yaml": config, **rendered(run)})


@pytest.mark.usefixtures("two_documents")
def test_what_a_job_needs_is_created_after_it_and_deleted_with_it(ground: Ground, image: str) -> None:
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 0
    config = ground.api.get(ground.api.resource("v1", "ConfigMap"), TEAM, "config")
    (owner,) = config["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("JobSet", "train", jobsets(ground)[0]["metadata"]["uid"])  # type: ignore[index]
    assert main(["cancel", "train"]) == 0
    assert ground.api.all(ground.api.resource("v1", "ConfigMap"), TEAM) == []


@pytest.mark.usefixtures("two_documents")
def test_where_a_second_object_is_refused_the_first_is_deleted(ground: Ground, image: str, capsys: Capture) -> None:
    ground.before.append(refuse("/configmaps"))
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 1
    assert "may not create ConfigMap tpu-training/config" in capsys.readouterr().err
    assert jobsets(ground) == []


@pytest.mark.usefixtures("two_documents")
def test_ctrl_c_while_it_creates_leaves_nothing(ground: Ground, image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Cluster.create

    def create(cluster: Cluster, manifest: dict[str, Any]) -> dict[str, Any]:
        created = ask(cluster, manifest)
        if manifest["kind"] == "ConfigMap":
            raise KeyboardInterrupt
        return created

    monkeypatch.setattr(Cluster, "create", create)
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 130
    assert jobsets(ground) == []
    assert ground.api.all(ground.api.resource("v1", "ConfigMap"), TEAM) == []


@pytest.mark.usefixtures("two_documents")
def test_where_the_first_cannot_be_deleted_it_says_what_remains(ground: Ground, image: str, capsys: Capture) -> None:
    ground.before += [refuse("/configmaps"), refuse("/jobsets/train")]
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 1
    printed = capsys.readouterr().err
    assert "may not create ConfigMap tpu-training/config" in printed
    assert "could not be deleted, and remains: JobSet tpu-training/train" in printed


def test_a_lost_answer_does_not_delete_the_earlier_job_of_that_name(
    ground: Ground, image: str, capsys: Capture
) -> None:
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 0
    before = jobsets(ground)

    def lose(request: Request) -> None:
        if request.method == "POST":
            raise ConnectionError("lost")

    ground.before.append(lose)
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 1
    assert "it is not known whether that was done" in capsys.readouterr().err
    assert jobsets(ground) == before


def test_a_lost_answer_of_a_job_that_was_created_leaves_nothing(ground: Ground, image: str) -> None:
    def lose(request: Request) -> None:
        if request.method == "POST":
            ground.api.create(json.loads(request.body))
            raise ConnectionError("lost")

    ground.before.append(lose)
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 1
    assert jobsets(ground) == []


@pytest.mark.parametrize("status", [502, 504])
def test_a_job_that_a_proxy_says_was_not_created_is_taken_for_what_it_is(
    status: int, ground: Ground, image: str, capsys: Capture
) -> None:
    tries = itertools.count()

    def proxy(request: Request) -> Response | None:
        if request.method == "POST" and next(tries) == 0:
            ground.api.create(json.loads(request.body))
            return Response(status=status, body=b"<html>bad gateway</html>")
        return None

    ground.before.append(proxy)
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 0
    assert "Created JobSet tpu-training/train" in capsys.readouterr().err
    assert len(jobsets(ground)) == 1


@pytest.mark.usefixtures("two_documents")
def test_a_second_ctrl_c_says_what_remains(
    ground: Ground, image: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    ask = Cluster.create

    def create(cluster: Cluster, manifest: dict[str, Any]) -> dict[str, Any]:
        return interrupt() or {} if manifest["kind"] == "ConfigMap" else ask(cluster, manifest)

    monkeypatch.setattr(Cluster, "create", create)
    monkeypatch.setattr(Cluster, "delete", interrupt)
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 1
    said = "interrupted\nWhat was created before could not be deleted, and may remain: JobSet tpu-training/train"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ({"kind": "Role", "metadata": {"name": "a", "namespace": TEAM}}, "tpuenv creates no Role, only ConfigMap"),
        ({"kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": TEAM}}, "metadata.name is no text"),
        ({"kind": "ConfigMap", "metadata": {"name": "a"}}, 'no text; write namespace: "${NAMESPACE}"'),
        ({"kind": "ConfigMap"}, "ConfigMap: metadata.name is no text"),
        ({"kind": "ConfigMap", "metadata": {"name": "a", "namespace": TEAM, "labels": 1}}, "labels is no mapping"),
    ],
)
def test_a_recipe_with_an_object_that_cannot_be_created_creates_nothing(
    manifest: dict[str, Any],
    said: str,
    ground: Ground,
    image: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    from tpuenv.commands import submit

    rendered = submit.rendered
    monkeypatch.setattr(submit, "rendered", lambda run: {**rendered(run), "other.yaml": json.dumps(manifest)})
    assert main(["submit", "hello-tpu", "--detach"]) == 1
    assert said in capsys.readouterr().err
    assert not any(request.startswith("POST") for request in ground.requests)


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


@pytest.fixture
def fleet_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cases = Path(__file__).parents[2] / "cases"
    text = (cases / "three-teams-four-groups.env").read_text(encoding="utf-8")
    (tmp_path / "vars.env").write_text(text, encoding="utf-8")
    fleet = (cases / "three-teams-four-groups.fleet.yaml").read_text(encoding="utf-8")
    (tmp_path / "fleet.yaml").write_text(fleet, encoding="utf-8")
    monkeypatch.setenv("TPUENV_FOLDER", str(tmp_path))
    monkeypatch.delenv("TPU_TYPE")


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


def test_cancel_deletes_the_job_and_the_next_one_starts(ground: Ground, capsys: Capture) -> None:
    for name in ("one", "two", "three"):
        ground.api.create(job_set(name))
    assert main(["cancel", "one"]) == 0
    assert capsys.readouterr().out.startswith("Deleted JobSet tpu-training/one: it was running on 4 hosts, ")
    assert main(["jobs"]) == 0
    assert "waiting" not in capsys.readouterr().out
