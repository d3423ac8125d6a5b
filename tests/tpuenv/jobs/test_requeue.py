"""`tpuenv requeue`: the same job again, and nothing of it lost on the way."""

from __future__ import annotations

import copy
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal.http_server import Request, Response
from tests.rehearsal.job_sets import job_set
from tests.tpuenv.jobs.conftest import Ground, act_as
from tests.tpuenv.jobs.situations import make, situations
from tpuenv.main import main

Capture = pytest.CaptureFixture[str]
Object = dict[str, Any]


@pytest.fixture(autouse=True)
def _files_here(one_slice_settings: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def job(ground: Ground, name: str = "train") -> Object:
    found = ground.api.get(ground.api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"), "tpu-training", name)
    assert found is not None
    return found


def test_a_stuck_job_starts_again_by_the_same_name(ground: Ground, capsys: Capture) -> None:
    make(ground.api, situations()["stopped-by-kueue-and-its-quota-not-freed"])
    before = job(ground)
    assert main(["requeue", "train"]) == 0
    said = capsys.readouterr().out
    assert said == "Requeued JobSet tpu-training/train: it was stuck for 25m, and waits for the next free slices.\n"
    again = job(ground)
    assert again["metadata"]["uid"] != before["metadata"]["uid"]
    assert _without_marks(again) == _without_marks(before)
    assert main(["jobs"]) == 0
    assert "stuck" not in capsys.readouterr().out


def _without_marks(body: Object) -> Object:
    spec = copy.deepcopy(body["spec"])
    spec.pop("suspend", None)
    return {"spec": spec, "labels": body["metadata"].get("labels", {})}


@pytest.mark.usefixtures("fleet_settings")
def test_a_member_requeues_what_was_submitted_and_the_service_beside_it_is_there_again(
    fleet: Ground, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    act_as("alice@example.com", monkeypatch)
    assert main(["submit", "saxml", "--team", "research", "--name", "cell", "--detach"]) == 0
    services = fleet.api.resource("v1", "Service")
    (before,) = fleet.api.all(services, "research")
    assert main(["requeue", "cell", "--team", "research"]) == 0
    (after,) = fleet.api.all(services, "research")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"]["ports"] == before["spec"]["ports"]
    (owner,) = after["metadata"]["ownerReferences"]
    (cell,) = fleet.api.all(fleet.api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"), "research")
    assert (owner["name"], owner["uid"]) == ("cell", cell["metadata"]["uid"])


def test_what_kueue_wrote_into_the_templates_is_not_submitted(ground: Ground) -> None:
    """A member may not write the label by which a pod shows that Kueue admitted it."""
    ground.api.create(job_set())
    started = job(ground)
    template = started["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    workload = ground.api.get(ground.api.resource("kueue.x-k8s.io/v1beta2", "Workload"), "tpu-training", "jobset-train")
    assert workload is not None
    workload["spec"]["podSets"] = [{"name": "slice", "count": 4, "template": copy.deepcopy(template)}]
    ground.api.store(workload)
    template.setdefault("metadata", {})["labels"] = {"kueue.x-k8s.io/podset": "slice"}
    template["spec"]["nodeSelector"]["of-the-flavor"] = "tpu"
    template["spec"]["tolerations"] = [{"key": "of-the-flavor"}]
    ground.api.store(started)
    assert main(["requeue", "train"]) == 0
    again = job(ground)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    was = workload["spec"]["podSets"][0]["template"]
    assert again["spec"] == was["spec"] and again.get("metadata") in ({}, was.get("metadata"))


@pytest.mark.parametrize(("end", "said"), [("Completed", "has ended (succeeded)"), ("Failed", "has ended (failed)")])
def test_a_job_that_has_ended_is_not_requeued(ground: Ground, capsys: Capture, end: str, said: str) -> None:
    ground.api.create(job_set())
    ground.end("train", end)
    assert main(["requeue", "train"]) == 2
    assert said in capsys.readouterr().err


def test_a_job_that_waits_keeps_its_place(ground: Ground, capsys: Capture) -> None:
    for name in ("one", "two", "three"):
        ground.api.create(job_set(name))
    uid = job(ground, "three")["metadata"]["uid"]
    assert main(["requeue", "three"]) == 2
    assert "waits in its queue already, and would lose its place there" in capsys.readouterr().err
    assert job(ground, "three")["metadata"]["uid"] == uid


def test_where_it_cannot_be_created_again_its_manifests_are_kept(
    ground: Ground, capsys: Capture, tmp_path: Path
) -> None:
    ground.api.create(job_set())
    before = job(ground)

    def refuse(request: Request) -> Response | None:
        return Response(status=403, body=b"{}") if request.method == "POST" else None

    ground.before.append(refuse)
    assert main(["requeue", "train"]) == 1
    said = capsys.readouterr().err
    (file,) = tmp_path.glob("train-*.yaml")
    assert f"may be deleted, and not created again. Its manifests are in {file}: where" in said
    assert os.stat(file).st_mode & 0o077 == 0, "a Secret may be among them"
    (kept,) = yaml.safe_load_all(file.read_text())
    assert kept["metadata"]["name"] == "train" and "uid" not in kept["metadata"]
    ground.before.clear()
    ground.api.create(kept)
    assert _without_marks(job(ground)) == _without_marks(before)


@pytest.mark.parametrize("status", [503, 403])
def test_where_nothing_is_answered_after_the_deletion_the_file_is_named(
    ground: Ground, capsys: Capture, tmp_path: Path, status: int
) -> None:
    ground.api.create(job_set())
    deleted: list[Request] = []

    def lose(request: Request) -> Response | None:
        lost = Response(status=status, body=b"{}") if deleted else None
        deleted.extend([request] if request.method == "DELETE" else [])
        return lost

    ground.before.append(lose)
    assert main(["requeue", "train"]) == 1
    (file,) = tmp_path.glob("train-*.yaml")
    assert f"Its manifests are in {file}" in capsys.readouterr().err


def test_what_the_job_owns_comes_back_and_what_others_own_too_is_left_alone(ground: Ground) -> None:
    ground.api.create(job_set())
    uid = job(ground)["metadata"]["uid"]
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": uid}
    other = ground.api.create(_config_map("other"))
    owners = {"one": [owner], "both": [owner, {**_reference(other)}]}
    before = {name: ground.api.create(_config_map(name, of))["metadata"]["uid"] for name, of in owners.items()}
    assert main(["requeue", "train"]) == 0
    maps = ground.api.all(ground.api.resource("v1", "ConfigMap"), "tpu-training")
    after = {item["metadata"]["name"]: item["metadata"] for item in maps}
    assert after["both"]["uid"] == before["both"]
    assert after["one"]["uid"] != before["one"]
    assert [item["uid"] for item in after["one"]["ownerReferences"]] == [job(ground)["metadata"]["uid"]]


def _config_map(name: str, owners: list[Object] | None = None) -> Object:
    metadata = {"name": name, "namespace": "tpu-training", "ownerReferences": owners or []}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "value"}}


def _reference(body: Object) -> Object:
    metadata = body["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]}


def test_where_it_cannot_be_deleted_it_stays_and_no_file_remains(
    ground: Ground, capsys: Capture, tmp_path: Path
) -> None:
    ground.api.create(job_set())
    ground.before.append(lambda request: Response(status=403, body=b"{}") if request.method == "DELETE" else None)
    assert main(["requeue", "train"]) == 1
    assert "Its manifests are in" not in capsys.readouterr().err
    assert job(ground)
    assert list(tmp_path.glob("train-*.yaml")) == []
