"""RayJobs and RayClusters as `tpuenv submit`, `jobs`, `logs` and `cancel` show them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from manifests.images import reference
from manifests.recipes import FOLDER
from rehearsal.google.artifact_registry_api import push
from rehearsal.http_server import Request, Response, json_response
from tests.rehearsal.job_sets import job_set
from tests.rehearsal.ray_jobs import ray
from tests.tpuenv.jobs.conftest import Ground
from tpuenv.jobs.job import Job, State
from tpuenv.jobs.pod import Pod
from tpuenv.jobs.read_jobs import read_job
from tpuenv.kubernetes.client import Cluster
from tpuenv.main import main
from vocabulary.keys import TOPOLOGY_LABEL

TEAM = "tpu-training"
Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("at_once")

ADMITTED = {"status": {"conditions": [{"type": "Admitted", "status": "True"}]}}


@pytest.fixture(autouse=True)
def _project(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of the default environment, which the fake cloud holds."""
    monkeypatch.setenv("TPU_TYPE", "v6e-16")


@pytest.fixture
def image(ground: Ground) -> None:
    """Of the recipes, which somebody has built."""
    push(ground.fake.cloud, reference(ground.environment, FOLDER / "ray-jax"))


def pods(ground: Ground, **labels: str) -> list[str]:
    of_ray = {f"ray.io/{key.replace('_', '-')}": value for key, value in labels.items()}
    return [
        str(pod["metadata"]["name"]) for pod in ground.pods() if of_ray.items() <= pod["metadata"]["labels"].items()
    ]


def end(ground: Ground, deployment: str, status: str = "", **more: str) -> None:
    ground.patch("RayJob", "train", {"status": {"jobDeploymentStatus": deployment, "jobStatus": status, **more}})


@pytest.mark.usefixtures("image")
def test_submit_follows_the_log_of_the_program_until_the_ray_job_succeeds(ground: Ground, capsys: Capture) -> None:
    ground.at_reads(
        "train",
        lambda: ground.log(*pods(ground, originated_from_crd="RayJob"), "sum is right"),
        lambda: None,
        lambda: end(ground, "Complete", "SUCCEEDED"),
    )
    assert main(["submit", "ray-jax", "--slices", "2", "--name", "train"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "sum is right\n"
    assert "running on 8 hosts; log of submitter (pod train-" in printed.err
    assert "RayJob tpu-training/train succeeded" in printed.err


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (("Failed", "FAILED", "AppFailed", "exit code 1"), "failed: exit code 1"),
        (("Failed", "", "DeadlineExceeded", ""), "failed: DeadlineExceeded"),
        (("Complete", "STOPPED", "", ""), "failed: it was stopped in Ray"),
        (("ValidationFailed", "", "ValidationFailed", "no"), "it keeps its slices until `tpuenv cancel` deletes it"),
    ],
)
def test_a_ray_job_that_failed_ends_with_its_reason_and_one(
    ground: Ground, capsys: Capture, status: tuple[str, str, str, str], said: str
) -> None:
    ground.api.create(ray("ray-jax"))
    deployment, of_job, reason, message = status
    end(ground, deployment, of_job, reason=reason, message=message)
    assert main(["logs", "train", "--follow"]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("image")
def test_a_ray_cluster_is_followed_until_every_host_runs_and_says_how_its_dashboard_is_reached(
    ground: Ground, capsys: Capture
) -> None:
    assert main(["submit", "ray-cluster", "--name", "mine"]) == 0
    printed = capsys.readouterr().err
    assert "RayCluster tpu-training/mine is running on 4 hosts, and holds its slices until it is deleted" in printed
    assert "kubectl port-forward --namespace tpu-training service/mine-head-svc 8265" in printed
    assert (
        "kubectl get secret --namespace tpu-training mine --template '{{.data.auth_token | base64decode}}'" in printed
    )


@pytest.mark.usefixtures("image")
@pytest.mark.parametrize(("recipe", "spec"), [("ray-cluster", "spec"), ("ray-jax", "spec.rayClusterSpec")])
def test_an_add_on_that_knows_no_tokens_gets_the_run_without_and_that_is_said(
    ground: Ground, capsys: Capture, recipe: str, spec: str
) -> None:
    """The words are those of the API server: apiextensions-apiserver 0.34.1, pkg/apiserver, schemaCoercingDecoder."""

    def refuse(request: Request) -> Response | None:
        if request.method != "POST" or b'"authOptions"' not in request.body:
            return None
        kind = json.loads(request.body)["kind"]
        said = f'{kind} in version "v1" cannot be handled as a {kind}: strict decoding error: '
        said += f'unknown field "{spec}.authOptions"'
        return json_response({"message": said, "reason": "BadRequest", "code": 400}, status=400)

    ground.before.append(refuse)
    assert main(["submit", recipe, "--name", "mine", "--detach"]) == 0
    (cluster,) = ground.api.all(ground.api.resource("ray.io/v1", "RayCluster"), TEAM)
    assert "authOptions" not in cluster["spec"]
    printed = capsys.readouterr().err
    assert printed.count("older than KubeRay 1.5.1: Ray's dashboard will ask for no token") == 1


def test_the_log_of_the_head_of_a_ray_cluster_is_followed_until_it_is_deleted(ground: Ground, capsys: Capture) -> None:
    ground.api.create(ray("ray-cluster", "mine"))
    ground.log(*pods(ground, node_type="head"), "started")
    ground.at_reads(
        "mine",
        lambda: None,
        lambda: ground.api.delete(ground.api.resource("ray.io/v1", "RayCluster"), TEAM, "mine"),
    )
    assert main(["logs", "mine", "--follow"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "started\n"
    assert "RayCluster tpu-training/mine was deleted" in printed.err


def test_jobs_lists_a_ray_job_once_with_its_hosts_and_what_waits_for_its_slices(
    ground: Ground, capsys: Capture
) -> None:
    ground.api.create(ray("ray-jax", slices=2))
    ground.api.create(ray("ray-cluster", "waits"))
    assert main(["jobs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:] if not line.startswith(" ")] == ["train", "waits"]
    assert "running on 8 hosts  -      2 of tpu" in lines[1]
    assert "waiting" in lines[2]


def test_logs_prints_the_program_the_head_or_a_host_of_a_ray_job(ground: Ground, capsys: Capture) -> None:
    ground.api.create(ray("ray-jax"))
    for name, words in (
        (pods(ground, originated_from_crd="RayJob"), []),
        (pods(ground, node_type="head"), ["--part", "head"]),
        (pods(ground, replica_host_index="0"), ["--part", "slice"]),
        (pods(ground, replica_host_index="3"), ["--host", "3"]),
    ):
        ground.log(*name, f"of {name[0]}")
        assert main(["logs", "train", *words]) == 0
        assert capsys.readouterr().out == f"of {name[0]}\n"


def test_logs_of_a_host_of_a_ray_job_that_has_ended_names_the_log_that_is_left(ground: Ground, capsys: Capture) -> None:
    """KubeRay deletes the cluster of a RayJob that has ended; the pod that submitted it stays."""
    ground.api.create(ray("ray-jax"))
    end(ground, "Complete", "SUCCEEDED")
    for pod in ground.pods():
        if "ray.io/node-type" in pod["metadata"]["labels"]:
            ground.api.remove(pod)
    assert main(["logs", "train", "--slice", "1"]) == 1
    said = "(succeeded) has no pods of hosts now, only of submitter: `tpuenv logs train --part submitter` prints that"
    assert said in capsys.readouterr().err


def test_cancel_deletes_a_ray_job_with_all_that_it_has(ground: Ground, capsys: Capture) -> None:
    ground.api.create(ray("ray-jax"))
    assert main(["cancel", "train"]) == 0
    assert "Deleted RayJob tpu-training/train: it was running on 4 hosts" in capsys.readouterr().out
    assert ground.pods() == []


def test_a_host_of_a_ray_job_that_is_stuck_is_explained(ground: Ground, capsys: Capture) -> None:
    ground.api.create(ray("ray-jax"))
    (host,) = pods(ground, replica_host_index="2")
    state = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    stuck = {"phase": "Pending", "containerStatuses": [{"name": "ray", "image": "x", "state": state}]}
    ground.patch("Pod", host, {"status": stuck})
    assert main(["jobs"]) == 0
    printed = capsys.readouterr().out
    assert "starting (3 of 4 hosts run)" in printed
    assert "image x cannot be pulled on slice 0, host 2: the registry has no such image" in printed


def test_why_says_what_failed_in_a_ray_job(ground: Ground, capsys: Capture) -> None:
    ground.api.create(ray("ray-jax"))
    end(ground, "Failed", "FAILED", reason="AppFailed", message="exit code 1")
    assert main(["why", "train"]) == 0
    printed = capsys.readouterr().out
    assert "failed: submitter ended with exit code 1, and its program failed in Ray" in printed
    assert "RayJob: AppFailed: exit code 1" in printed


def test_why_says_what_the_addon_refused(ground: Ground, capsys: Capture) -> None:
    ray_job = ray("ray-jax")
    ray_job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"]["nodeSelector"].pop(TOPOLOGY_LABEL)
    ground.api.create(ray_job)
    refused = ground.api.get(ground.api.resource("ray.io/v1", "RayJob"), TEAM, "train")["status"]["message"]
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "a", "namespace": TEAM},
        "type": "Warning",
        "reason": "FailedToCreateRayCluster",
        "message": f"Failed to create RayCluster: {refused}",
        "involvedObject": {"kind": "RayJob", "name": "train"},
    }
    ground.api.create(event)
    assert main(["why", "train"]) == 0
    printed = capsys.readouterr().out
    assert "refuses them (TPU topology not specified); correct what it names" in printed


@pytest.mark.parametrize(
    ("deployment", "status", "state"),
    [
        ("", "", State.ADMITTED),
        ("Initializing", "", State.ADMITTED),
        ("Waiting", "", State.ADMITTED),
        ("Running", "PENDING", State.ADMITTED),
        ("Running", "RUNNING", State.ADMITTED),
        ("Retrying", "", State.ADMITTED),
        ("Complete", "SUCCEEDED", State.SUCCEEDED),
        ("Complete", "STOPPED", State.FAILED),
        ("Failed", "FAILED", State.FAILED),
        ("Failed", "", State.FAILED),
        ("ValidationFailed", "", State.FAILED),
    ],
)
def test_the_state_of_a_ray_job_is_by_the_two_fields_that_kuberay_writes(
    deployment: str, status: str, state: State
) -> None:
    """Of an admitted one without pods. ray-operator/apis/ray/v1/rayjob_types.go names all of them."""
    body = ray("ray-jax") | {"status": {"jobDeploymentStatus": deployment, "jobStatus": status}}
    assert Job(kind="RayJob", team=TEAM, name="train", body=body, workload=ADMITTED).state == state


def test_a_suspended_ray_job_waits(ground: Ground, cluster: Cluster) -> None:
    ground.api.create(ray("ray-jax", slices=2))
    ground.api.create(job_set("urgent", **{"kueue.x-k8s.io/priority-class": "high"}))
    job = read_job(cluster, team=TEAM, kind="RayJob", name="train")
    assert job
    assert (job.state, job.pods, job.position) == (State.WAITING, (), 1)


def test_a_retry_counts_as_a_restart_and_the_last_failure_does_not() -> None:
    def restarts(failed: int, limit: int) -> int:
        body: dict[str, Any] = {"spec": {"backoffLimit": limit}, "status": {"failed": failed}}
        return Job(kind="RayJob", team=TEAM, name="train", body=body, workload={}).restarts

    assert [restarts(0, 2), restarts(1, 2), restarts(3, 2), restarts(1, 0)] == [0, 1, 2, 0]


def test_the_pods_of_an_older_kuberay_are_numbered_by_what_the_addon_writes() -> None:
    containers = [{"name": "ray", "env": [{"name": "TPU_WORKER_ID", "value": "3"}]}]
    labels = {"ray.io/node-type": "worker", "ray.io/group": "slice", "replicaIndex": "slice-1"}
    pod = Pod(body={"metadata": {"name": "a", "labels": labels}, "spec": {"containers": containers}})
    assert (pod.part, pod.slice, pod.host) == ("slice", 1, 3)
