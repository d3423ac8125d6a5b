"""Rules of Kueue in the fake cluster: queues and flavors, and what becomes of jobs in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.status import Status
from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.fake import FakeCloud
from tests.rehearsal.job_sets import job_set

CLUSTER = "projects/my-project/locations/us-east5/clusters/tpu-cluster"
QUEUE = "kubernetes_manifest.clusterqueue-tpu-training"
FLAVOR = "kubernetes_manifest.resourceflavor-tpu"

API = "kueue.x-k8s.io/v1beta2"


@pytest.fixture
def api(deployed: FakeCloud) -> Api:
    return Api(deployed.cloud, CLUSTER)


def workload(api: Api, name: str = "train") -> dict[str, Any]:
    return api.get(api.resource(API, "Workload"), "tpu-training", f"jobset-{name}")


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([("cpu", "cpu", "a"), ("memory", "memory", "a")], "flavor a is in two resource groups"),
        ([("cpu", "cpu", "a"), ("cpu", "cpu", "b")], r'resourceGroups\[1\].coveredResources: Duplicate value: "cpu"'),
        (
            [("cpu", "memory", "a")],
            r"flavors\[a\].resources: must be the same as coveredResources, and in their order: cpu",
        ),
    ],
)
def test_a_cluster_queue_that_kueue_refuses(api: Api, groups: list[tuple[str, str, str]], words: str) -> None:
    body = {
        "apiVersion": API,
        "kind": "ClusterQueue",
        "metadata": {"name": "x"},
        "spec": {
            "resourceGroups": [
                {"coveredResources": [covered], "flavors": [{"name": flavor, "resources": [{"name": resource}]}]}
                for covered, resource, flavor in groups
            ]
        },
    }
    with pytest.raises(Status, match=words):
        api.create(body)


def test_limits_on_borrowing_need_a_cohort(deployed: FakeCloud, api: Api) -> None:
    body = json.loads(json.dumps(deployed.resources[QUEUE].config["manifest"]))
    body["metadata"]["name"] = "x"
    body["spec"].pop("cohortName", None)
    body["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = "1"
    with pytest.raises(Status, match="must be nil when cohortName is empty"):
        api.create(body)


def test_a_local_queue_keeps_its_cluster_queue(api: Api) -> None:
    resource = api.resource(API, "LocalQueue")
    with pytest.raises(Status, match=r"spec.clusterQueue: field is immutable"):
        api.patch(resource, "tpu-training", "default", {"spec": {"clusterQueue": "other"}})


def test_a_queue_whose_flavor_is_missing_is_not_active_and_the_wait_says_so(deployed: FakeCloud) -> None:
    manifest = json.loads(json.dumps(deployed.resources[QUEUE].config["manifest"]))
    manifest["metadata"]["name"] = "x"
    manifest["spec"]["resourceGroups"][0]["flavors"][0]["name"] = "nothing"
    with pytest.raises(Refusal, match="Operation timed out") as refused:
        deployed.make("kubernetes_manifest.two", like=QUEUE, manifest=manifest)
    assert "x should have condition Active=True, but it is False" in refused.value.detail
    assert "references missing ['nothing']" in refused.value.detail
    assert refused.value.left is not None, "it exists, and Terraform is to know"


def test_a_local_queue_without_its_cluster_queue_is_not_active(deployed: FakeCloud, api: Api) -> None:
    api.remove(api.get(api.resource(API, "ClusterQueue"), "", "tpu-training"))
    status = api.get(api.resource(API, "LocalQueue"), "tpu-training", "default")["status"]
    assert status["conditions"][0]["reason"] == "ClusterQueueDoesNotExist"


def test_a_job_that_fits_is_admitted_and_runs(api: Api) -> None:
    made = api.create(job_set())
    assert made["spec"]["suspend"] is False
    assignment = workload(api)["status"]["admission"]["podSetAssignments"][0]
    assert (assignment["count"], assignment["flavors"]["google.com/tpu"]) == (4, "tpu")


def test_a_job_waits_for_quota_and_is_admitted_when_there_is_room(api: Api) -> None:
    for name in ("one", "two", "three"):
        api.create(job_set(name))
    queue = api.get(api.resource(API, "ClusterQueue"), "", "tpu-training")
    assert (queue["status"]["admittedWorkloads"], queue["status"]["pendingWorkloads"]) == (2, 1)
    assert "admission" not in workload(api, "three")["status"]
    api.delete(api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"), "tpu-training", "one")
    assert workload(api, "three")["status"]["admission"]["clusterQueue"] == "tpu-training"


def with_priority(name: str, priority: str) -> dict[str, Any]:
    made = job_set(name)
    made["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = priority
    return made


def test_a_job_of_the_same_priority_waits_and_its_status_says_so(api: Api) -> None:
    for name in ("one", "two", "three"):
        api.create(with_priority(name, "medium"))
    (condition,) = workload(api, "three")["status"]["conditions"]
    assert "in use by jobs that this one may not stop; it starts when they are done" in condition["message"]
    assert "admission" in workload(api, "one")["status"]


def test_a_job_of_a_higher_priority_takes_the_place_of_the_lowest(api: Api) -> None:
    for name, priority in (("one", "medium"), ("two", "low"), ("three", "high")):
        api.create(with_priority(name, priority))
    assert workload(api, "three")["status"]["admission"]["clusterQueue"] == "tpu-training"
    assert "admission" in workload(api, "one")["status"]
    stopped = api.get(api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"), "tpu-training", "two")
    assert stopped["spec"]["suspend"] is True
    evicted, preempted, waits = workload(api, "two")["status"]["conditions"]
    assert (evicted["reason"], preempted["reason"]) == ("Preempted", "InClusterQueue")
    uid = workload(api, "three")["metadata"]["uid"]
    assert f"(UID: {uid}, JobUID: UNKNOWN) due to prioritization in the ClusterQueue;" in evicted["message"]
    assert "in use by jobs that this one may not stop" in waits["message"]


def test_a_cluster_queue_with_jobs_does_not_go_undrained(deployed: FakeCloud, api: Api) -> None:
    api.create(job_set())
    with pytest.raises(Refusal, match='Timed out when waiting for resource "tpu-training" to be deleted') as refused:
        deployed.destroy(QUEUE)
    assert "workload tpu-training/jobset-train is admitted by it; finalizer kueue.x-k8s.io" in refused.value.detail


def test_a_drained_queue_goes_and_its_jobs_stay_suspended(deployed: FakeCloud, api: Api) -> None:
    api.create(job_set())
    api.patch(api.resource(API, "ClusterQueue"), "", "tpu-training", {"spec": {"stopPolicy": "HoldAndDrain"}})
    deployed.destroy(QUEUE)
    assert not api.exists(api.resource(API, "ClusterQueue"), "", "tpu-training")
    left = api.get(api.resource("jobset.x-k8s.io/v1alpha2", "JobSet"), "tpu-training", "train")
    assert left["spec"]["suspend"] is True


def test_a_flavor_in_use_does_not_go(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match='resource "tpu" to be deleted') as refused:
        deployed.destroy(FLAVOR)
    assert "ClusterQueue tpu-training uses it" in refused.value.detail


def test_an_admission_check_in_use_does_not_go(api: Api) -> None:
    check = {"apiVersion": API, "kind": "AdmissionCheck", "metadata": {"name": "provision"}, "spec": {}}
    api.create(check)
    strategy = {"admissionChecks": [{"name": "provision"}]}
    queues, checks = api.resource(API, "ClusterQueue"), api.resource(API, "AdmissionCheck")
    api.patch(queues, "", "tpu-training", {"spec": {"admissionChecksStrategy": strategy}})
    assert api.delete(checks, "", "provision") is not None
    api.patch(queues, "", "tpu-training", {"spec": {"admissionChecksStrategy": None}})
    assert not api.exists(checks, "", "provision")


def test_a_flavor_goes_with_the_last_queue_that_uses_it(deployed: FakeCloud, api: Api) -> None:
    with pytest.raises(Refusal):
        deployed.destroy(FLAVOR)
    deployed.destroy(QUEUE)
    assert not api.exists(api.resource(API, "ResourceFlavor"), "", "tpu")
