"""`tpuenv submit`, as it is typed, with the fake cluster over HTTP: what it creates, and what it leaves."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from rehearsal.http_server import Request, Response, json_response
from tests.tpuenv.jobs.conftest import Ground, jobsets
from tpuenv.kubernetes.client import Cluster
from tpuenv.main import main

TEAM = "tpu-training"
Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("at_once", "one_slice_settings")


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
    said = [line.strip().partition(": ")[0] for line in printed.err.splitlines()]
    created_at = said.index("Created JobSet tpu-training/try-1")
    assert said[created_at + 1 : created_at + 5] == ["alerts", "queues and jobs", "TPUs", "log"]
    assert said[-1] == "log"
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


@pytest.mark.parametrize("words", [["--detach"], []])
def test_submit_into_a_queue_on_hold_says_so(ground: Ground, image: str, capsys: Capture, words: list[str]) -> None:
    queue = ground.api.resource("kueue.x-k8s.io/v1beta2", "ClusterQueue")
    ground.api.patch(queue, "", TEAM, {"spec": {"stopPolicy": "Hold"}})
    deleted = ground.api.resource("jobset.x-k8s.io/v1alpha2", "JobSet")
    ground.at_reads("held", *[lambda: None] * 3, lambda: ground.api.delete(deleted, TEAM, "held"))
    assert main(["submit", "hello-tpu", "--name", "held", *words]) == (0 if words else 1)
    said = " ".join(capsys.readouterr().err.split())
    assert "its queue ClusterQueue tpu-training is on hold: nothing starts there; an administrator runs" in said
    assert "which starts it again unless HOLD_QUEUES=true" in said


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


@pytest.mark.parametrize(("group", "noted"), [("dev", True), ("burst", False)])
@pytest.mark.usefixtures("fleet_settings")
def test_submit_notes_how_little_time_pods_on_spot_have_to_end(
    fleet: Ground, capsys: Capture, group: str, noted: bool
) -> None:
    assert main(["submit", "maxtext", "--team", "students", "--group", group]) == 1, "there is no image"
    said = " ".join(capsys.readouterr().err.split())
    note = "note: slice: on spot, pods get 15 s after the notice, whatever terminationGracePeriodSeconds says (300)"
    assert (note in said) == noted, said


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

    rendered = submit.rendered  # type: ignore[attr-defined]
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
    printed = capsys.readouterr().err
    assert "it is not known whether that was done" in printed
    assert "tpuenv cancel" not in printed, "it is another job"
    assert jobsets(ground) == before


@pytest.mark.parametrize("looks", [1, 2])
def test_ctrl_c_before_the_job_appears_deletes_it_or_names_it(
    ground: Ground, image: str, capsys: Capture, looks: int
) -> None:
    """The API server goes on with a request whose client has gone."""
    sent: list[Request] = []
    has_left = threading.Event()

    def late(request: Request) -> Response | None:
        if request.method == "POST":
            sent.append(request)
            os.kill(os.getpid(), signal.SIGINT)
            has_left.wait(30)
            return Response(status=403)
        if request.method == "GET" and request.path.endswith("/jobsets/train"):
            has_left.set()
            sent.append(request)
            if len(sent) == 3 and looks == 2:
                ground.api.create(json.loads(sent[0].body))
        return None

    ground.before.append(late)
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 130
    assert len(sent) > looks, "POST, and so many looks at least"
    named = "may remain: JobSet tpu-training/train; to delete it:\n  tpuenv cancel train --team tpu-training\n"
    assert (named in capsys.readouterr().err) == (looks == 1)
    assert jobsets(ground) == []


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
    assert main(["submit", "hello-tpu", "--name", "train", "--detach"]) == 130
    said = "interrupted\nWhat was created before could not be deleted, and may remain: JobSet tpu-training/train"
    printed = capsys.readouterr().err
    assert said in printed
    assert "tpuenv cancel train --team tpu-training" in printed


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

    rendered = submit.rendered  # type: ignore[attr-defined]
    monkeypatch.setattr(submit, "rendered", lambda run: {**rendered(run), "other.yaml": json.dumps(manifest)})
    assert main(["submit", "hello-tpu", "--detach"]) == 1
    assert said in capsys.readouterr().err
    assert not any(request.startswith("POST") for request in ground.requests)
