"""The fake KubeRay: the pods of RayJobs and RayClusters, what becomes of their slices, what the add-on refuses."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.status import Status
from tests.rehearsal.deployed import admitted, api_of
from tests.rehearsal.fake import FakeCloud
from tests.rehearsal.job_sets import job_set
from tests.rehearsal.ray_jobs import ray

TEAM = "tpu-training"
RAY_JOB, RAY_CLUSTER = ("ray.io/v1", "RayJob"), ("ray.io/v1", "RayCluster")


@pytest.fixture
def api(deployed: FakeCloud) -> Api:
    return api_of(deployed)


def places(api: Api) -> dict[str, str]:
    """The node of each pod, by the head's type, a worker's slice and host, and the submitter's label."""
    nodes = {}
    for pod in api.all(api.resource("v1", "Pod"), TEAM):
        labels = pod["metadata"]["labels"]
        if labels.get("ray.io/node-type") == "worker":
            place = f"{labels['ray.io/worker-group-replica-index']}/{labels['ray.io/replica-host-index']}"
        else:
            place = labels.get("ray.io/node-type") or labels["ray.io/originated-from-crd"]
        nodes[place] = pod["spec"].get("nodeName", "")
    return nodes


def ray_clusters(api: Api) -> list[dict[str, Any]]:
    return api.all(api.resource(*RAY_CLUSTER), TEAM)


def end(api: Api, name: str, deployment: str, status: str) -> None:
    change = {"status": {"jobDeploymentStatus": deployment, "jobStatus": status}}
    api.patch(api.resource(*RAY_JOB), TEAM, name, change)


def test_a_ray_job_has_a_cluster_of_its_own_with_a_pod_on_every_host_and_a_submitter(api: Api) -> None:
    api.create(ray("ray-jax", slices=2))
    (cluster,) = ray_clusters(api)
    assert cluster["metadata"]["name"].startswith("train-")
    assert cluster["metadata"]["labels"]["ray.io/originated-from-cr-name"] == "train"
    nodes = places(api)
    assert {key: node for key, node in nodes.items() if "/" in key} == {
        f"{slice_}/{host}": f"gke-tpu-cluster-tpu-{slice_}-{host}" for slice_ in range(2) for host in range(4)
    }
    assert {nodes["head"], nodes["RayJob"]} == {"gke-tpu-cluster-cpu-0"}
    assert admitted(api) == {f"{TEAM}/rayjob-train"}, "Kueue queues the RayJob, and not what it makes"


@pytest.mark.parametrize("end_", [("Complete", "SUCCEEDED"), ("Failed", "FAILED"), ("Complete", "STOPPED")])
def test_when_a_ray_job_ends_its_cluster_goes_its_slices_are_free_and_its_submitter_stays(
    api: Api, end_: tuple[str, str]
) -> None:
    api.create(ray("ray-jax", slices=2))
    api.create(job_set("next"))
    assert admitted(api) == {f"{TEAM}/rayjob-train"}
    end(api, "train", *end_)
    assert ray_clusters(api) == []
    assert f"{TEAM}/jobset-next" in admitted(api)
    pods = api.all(api.resource("v1", "Pod"), TEAM)
    (submitter,) = (pod for pod in pods if pod["metadata"]["name"].startswith("train"))
    assert submitter["status"]["phase"] == ("Succeeded" if end_[1] == "SUCCEEDED" else "Failed")


def test_a_ray_job_that_gives_way_loses_its_cluster_and_gets_another_when_it_starts_again(api: Api) -> None:
    api.create(ray("ray-jax", slices=2))
    (first,) = ray_clusters(api)
    urgent = job_set("urgent", **{"kueue.x-k8s.io/priority-class": "high"})
    api.create(urgent)
    assert ray_clusters(api) == []
    assert api.get(api.resource(*RAY_JOB), TEAM, "train")["status"] == {"jobDeploymentStatus": "Suspended"}
    api.delete(api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"), TEAM, "urgent")
    (second,) = ray_clusters(api)
    assert second["metadata"]["name"] != first["metadata"]["name"]


def test_a_ray_cluster_holds_its_slices_until_it_is_deleted(api: Api) -> None:
    api.create(ray("ray-cluster", "mine", slices=2))
    api.create(job_set("next"))
    assert {key: node for key, node in places(api).items() if "/" not in key} == {"head": "gke-tpu-cluster-cpu-0"}
    assert admitted(api) == {f"{TEAM}/raycluster-mine"}
    api.delete(api.resource(*RAY_CLUSTER), TEAM, "mine")
    assert f"{TEAM}/jobset-next" in admitted(api)


def test_a_deleted_ray_job_takes_its_cluster_and_its_pods_along(api: Api) -> None:
    api.create(ray("ray-jax"))
    api.delete(api.resource(*RAY_JOB), TEAM, "train")
    assert (ray_clusters(api), places(api)) == ([], {})


def test_the_addon_refuses_a_number_of_hosts_that_is_not_that_of_the_slice(api: Api) -> None:
    cluster = ray("ray-cluster")
    group = cluster["spec"]["workerGroupSpecs"][0]
    group["numOfHosts"] = 2
    with pytest.raises(Status, match="denied the request: Number of workers in worker group not equal to specified"):
        api.create(cluster)
    del group["template"]["spec"]["nodeSelector"]["cloud.google.com/gke-tpu-topology"]
    with pytest.raises(Status, match="denied the request: TPU topology not specified"):
        api.create(cluster)


def test_the_addon_refuses_a_topology_with_a_side_that_is_no_number(api: Api) -> None:
    cluster = ray("ray-cluster")
    pod = cluster["spec"]["workerGroupSpecs"][0]["template"]["spec"]
    pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = "4xfoo"
    with pytest.raises(Status, match='parsing "foo": invalid syntax'):
        api.create(cluster)
