"""The pods of jobs in the fake cluster, and what becomes of the queue when a job ends or is deleted."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.pods import log_of
from rehearsal.kubernetes.status import Status
from tests.rehearsal.deployed import admitted, api_of
from tests.rehearsal.fake import FakeCloud
from tests.rehearsal.job_sets import job_set

TEAM = "tpu-training"
JOBSETS = "jobset.x-k8s.io/v1alpha2", "JobSet"


@pytest.fixture
def api(deployed: FakeCloud) -> Api:
    return api_of(deployed)


def pods(api: Api) -> list[dict[str, Any]]:
    return api.all(api.resource("v1", "Pod"), TEAM)


def patch(api: Api, kind: tuple[str, str], name: str, change: dict[str, Any]) -> None:
    api.patch(api.resource(*kind), TEAM, name, change)


def test_each_host_has_a_pod_with_jobsets_labels_on_a_node_of_its_slice(api: Api) -> None:
    two = job_set()
    two["spec"]["replicatedJobs"][0]["replicas"] = 2
    api.create(two)
    places = []
    for pod in pods(api):
        labels = pod["metadata"]["labels"]
        slice_, host = labels["jobset.sigs.k8s.io/job-index"], labels["batch.kubernetes.io/job-completion-index"]
        assert labels["jobset.sigs.k8s.io/jobset-name"] == "train"
        assert pod["metadata"]["name"].startswith(f"train-slice-{slice_}-{host}-")
        assert pod["status"]["phase"] == "Running"
        places.append((slice_, host, pod["spec"]["nodeName"]))
    expected = [(f"{i}", f"{host}", f"gke-tpu-cluster-tpu-{i}-{host}") for i in range(2) for host in range(4)]
    assert places == expected
    assert len({pod["metadata"]["uid"] for pod in pods(api)}) == 8


@pytest.mark.parametrize("indexed", [True, False])
def test_a_job_of_its_own_has_pods_too(api: Api, indexed: bool) -> None:
    spec = job_set()["spec"]["replicatedJobs"][0]["template"]["spec"]
    spec["template"]["spec"].pop("nodeSelector")
    spec["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "alone", "namespace": TEAM}}
    api.create({**body, "spec": {**spec, **({"completionMode": "Indexed"} if indexed else {})}})
    assert len(pods(api)) == 4
    for number, pod in enumerate(pods(api)):
        assert pod["metadata"]["labels"]["job-name"] == "alone"
        assert ("batch.kubernetes.io/job-completion-index" in pod["metadata"]["labels"]) == indexed
        assert pod["metadata"]["name"].startswith(f"alone-{number}-" if indexed else "alone-")


def test_a_job_that_waits_has_no_pods_until_one_before_it_is_deleted(api: Api) -> None:
    for name in ("one", "two", "three"):
        api.create(job_set(name))
    assert {pod["metadata"]["name"].split("-")[0] for pod in pods(api)} == {"one", "two"}
    api.delete(api.resource(*JOBSETS), TEAM, "one")
    assert {pod["metadata"]["name"].split("-")[0] for pod in pods(api)} == {"two", "three"}


@pytest.mark.parametrize(("condition", "phase"), [("Completed", "Succeeded"), ("Failed", "Failed")])
def test_a_job_that_has_ended_keeps_its_pods_and_frees_its_slices(api: Api, condition: str, phase: str) -> None:
    for name in ("one", "two", "three"):
        api.create(job_set(name))
    patch(api, JOBSETS, "one", {"status": {"conditions": [{"type": condition, "status": "True"}]}})
    assert admitted(api) == {f"{TEAM}/jobset-{name}" for name in ("one", "two", "three")}
    assert {pod["status"]["phase"] for pod in pods(api) if pod["metadata"]["name"].startswith("one")} == {phase}
    (queue,) = api.all(api.resource("kueue.x-k8s.io/v1beta2", "ClusterQueue"))
    assert queue["status"]["admittedWorkloads"] == 2
    chips = [item for item in queue["status"]["flavorsUsage"][0]["resources"] if item["name"] == "google.com/tpu"]
    assert chips == [{"name": "google.com/tpu", "total": "32"}]


def test_the_status_of_a_pod_is_what_is_written_to_it_until_its_job_restarts(api: Api) -> None:
    api.create(job_set())
    first = pods(api)[0]["metadata"]["name"]
    patch(api, ("v1", "Pod"), first, {"status": {"phase": "Failed"}})
    assert [pod["status"]["phase"] for pod in pods(api)].count("Failed") == 1
    patch(api, JOBSETS, "train", {"status": {"restarts": 1}})
    assert [pod["status"]["phase"] for pod in pods(api)] == ["Running"] * 4
    assert first not in {pod["metadata"]["name"] for pod in pods(api)}


def test_pods_without_a_node_are_pending_and_have_no_log(deployed: FakeCloud, api: Api) -> None:
    api.create(job_set())
    deployed.cloud.delete(
        "google_container_node_pool", "projects/my-project/locations/us-east5/clusters/tpu-cluster/nodePools/tpu-0"
    )
    deployed.cloud.delete(
        "google_container_node_pool", "projects/my-project/locations/us-east5/clusters/tpu-cluster/nodePools/tpu-1"
    )
    (condition,) = pods(api)[0]["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "Unschedulable")
    with pytest.raises(Status, match="waiting to start: ContainerCreating"):
        log_of(api, pods(api)[0], timestamps=False, since="", tail=None)


def test_pods_have_no_node_when_their_pool_group_is_gone(api: Api) -> None:
    """Nodes of others do not do: Kueue wrote the labels of the flavor into the pods."""
    api.create(job_set())
    api.remove(api.get(api.resource("kueue.x-k8s.io/v1beta2", "ResourceFlavor"), "", "tpu"))
    assert {pod["status"]["phase"] for pod in pods(api)} == {"Pending"}
