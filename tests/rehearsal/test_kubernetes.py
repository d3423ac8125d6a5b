"""Rules of the Kubernetes API and of what lives in it: each is broken once."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from rehearsal.kubernetes import webhooks
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.resources import KUEUE, NAMESPACE
from rehearsal.kubernetes.status import Status
from rehearsal.terraform import fake_provider
from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.fake import FakeCloud
from tests.rehearsal.job_sets import job_set

CLUSTER = "projects/my-project/locations/us-east5/clusters/tpu-cluster"
QUEUE = "kubernetes_manifest.clusterqueue-tpu-training"
LOCAL = "kubernetes_manifest.localqueue-tpu-training-default"
FLAVOR = "kubernetes_manifest.resourceflavor-tpu"
TEAM = "kubernetes_namespace_v1.team-tpu-training_namespace_139BA39A"
ACCOUNT = "kubernetes_service_account_v1.team-tpu-training_account_FC8C4C00"
KUEUE_RELEASE = "helm_release.kueue"

API = "kueue.x-k8s.io/v1beta2"


@pytest.fixture
def api(deployed: FakeCloud) -> Api:
    return Api(deployed.cloud, CLUSTER)


def test_a_kind_without_its_crd_is_refused_at_plan(deployed: FakeCloud) -> None:
    deployed.destroy(KUEUE_RELEASE)
    with pytest.raises(Refusal, match="API did not recognize GroupVersionKind from manifest") as refused:
        deployed.make("kubernetes_manifest.two", like=FLAVOR)
    assert refused.value.detail == 'no matches for kind "ResourceFlavor" in version "kueue.x-k8s.io/v1beta2"'


def test_an_old_version_of_an_api_is_not_served(deployed: FakeCloud) -> None:
    manifest = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor", "metadata": {"name": "x"}}
    with pytest.raises(Refusal, match="API did not recognize"):
        deployed.make("kubernetes_manifest.two", manifest=manifest)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"host": None}, "localhost"),
        ({"host": "https://gke-elsewhere.us-east5.gke.goog"}, "lookup gke-elsewhere.us-east5.gke.goog: no such host"),
        ({"exec": []}, "Unauthorized"),
    ],
)
def test_a_provider_that_does_not_reach_the_cluster(deployed: FakeCloud, settings: dict[str, Any], words: str) -> None:
    deployed.settings["kubernetes"] |= settings
    with pytest.raises(Refusal, match=words):
        deployed.plan(FLAVOR)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"command": "gke-auth"}, "exec: executable gke-auth not found"),
        ({"args": ["tokens"]}, "exec: executable tpuenv failed with exit code 2"),
        (
            {"api_version": "client.authentication.k8s.io/v1beta1"},
            "is configured to use API version client.authentication.k8s.io/v1beta1, plugin returned version "
            "client.authentication.k8s.io/v1",
        ),
    ],
)
def test_another_credential_plugin_or_version_is_refused(
    deployed: FakeCloud, change: dict[str, Any], words: str
) -> None:
    deployed.settings["kubernetes"]["exec"][0] |= change
    with pytest.raises(Refusal, match=words):
        deployed.plan(FLAVOR)


def test_a_dns_endpoint_must_be_open_to_the_outside(deployed: FakeCloud) -> None:
    deployed.change(
        "google_container_cluster.cluster",
        control_plane_endpoints_config__dns_endpoint_config__allow_external_traffic=False,
    )
    with pytest.raises(Refusal, match="external traffic is not allowed to this DNS endpoint"):
        deployed.plan(FLAVOR)


def test_a_namespace_must_exist(deployed: FakeCloud) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "nowhere"}}
    with pytest.raises(Refusal) as refused:
        deployed.make("kubernetes_manifest.two", manifest=manifest)
    assert refused.value.detail == 'namespaces "nowhere" not found'
    with pytest.raises(Refusal, match='namespaces "nowhere" not found'):
        deployed.make("kubernetes_service_account_v1.two", metadata=[{"name": "x", "namespace": "nowhere"}])


def test_an_object_that_exists_is_not_created_again(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match="Cannot create resource that already exists"):
        deployed.make("kubernetes_manifest.two", like=FLAVOR)
    with pytest.raises(Refusal, match='namespaces "tpu-training" already exists'):
        deployed.make("kubernetes_namespace_v1.two", like=TEAM)


def test_a_name_that_kubernetes_refuses(api: Api) -> None:
    with pytest.raises(Status, match=r'metadata.name: Invalid value: "Upper"'):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "Upper"}})


def test_new_webhooks_do_not_answer_at_first_and_then_do(deployed: FakeCloud, api: Api) -> None:
    webhooks.install(api, "kueue")
    flavor = {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "x"}, "spec": {}}
    for _ in range(webhooks.REFUSALS):
        with pytest.raises(
            Status, match=r"failed calling webhook .*kueue-webhook-service.*: connect: connection refused"
        ) as no:
            api.create(flavor, dry_run=True)
        assert no.value.code == 500
    api.create(flavor, dry_run=True)


def test_terraform_meets_webhooks_that_do_not_answer(deployed: FakeCloud, api: Api) -> None:
    webhooks.install(api, "kueue")
    manifest = {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "x"}, "spec": {}}
    with pytest.raises(Refusal, match='PATCH for resource "x" failed to apply') as refused:
        deployed.make("kubernetes_manifest.two", manifest=manifest)
    assert "connection refused" in refused.value.detail


def test_a_dry_run_keeps_nothing(api: Api) -> None:
    before = len(api.everything())
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}, dry_run=True)
    assert len(api.everything()) == before


def test_a_namespace_with_jobs_needs_a_living_kueue_to_go(deployed: FakeCloud, api: Api) -> None:
    api.create(job_set())
    deployed.destroy(KUEUE_RELEASE)
    with pytest.raises(Refusal, match="context deadline exceeded: Namespace tpu-training is terminating") as refused:
        deployed.destroy(TEAM)
    assert "JobSet tpu-training/train has a finalizer that only Kueue removes" in refused.value.message


def test_a_namespace_takes_all_that_is_in_it(deployed: FakeCloud, api: Api) -> None:
    api.create(job_set())
    deployed.destroy(TEAM)
    assert [item for item in api.everything() if item["metadata"].get("namespace") == "tpu-training"] == []
    queue = api.get(api.resource(API, "ClusterQueue"), "", "tpu-training")
    assert queue["status"]["admittedWorkloads"] == 0


def test_nothing_is_made_in_a_namespace_that_is_going(deployed: FakeCloud, api: Api) -> None:
    api.create(job_set())
    deployed.destroy(KUEUE_RELEASE)
    api.delete(NAMESPACE, "", "tpu-training")
    with pytest.raises(Status, match="because it is being terminated"):
        api.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "tpu-training"}})


def test_drift_of_a_queue_is_planned_back(deployed: FakeCloud, api: Api) -> None:
    flavors = [{"op": "x"}]
    api.patch(api.resource(API, "ClusterQueue"), "", "tpu-training", {"spec": {"resourceGroups": flavors}})
    assert not deployed.unchanged(QUEUE)
    deployed.resources[QUEUE].state = deployed.read(QUEUE)
    deployed.change(QUEUE)
    assert deployed.unchanged(QUEUE)


def test_a_field_that_somebody_else_set_is_a_conflict_unless_forced(deployed: FakeCloud, api: Api) -> None:
    """A drain that was given up leaves its stopPolicy behind; the product's next deploy takes it back."""
    for forced in (False, True):
        api.patch(api.resource(API, "ClusterQueue"), "", "tpu-training", {"spec": {"stopPolicy": "HoldAndDrain"}})
        deployed.resources[QUEUE].state = deployed.read(QUEUE)
        if not forced:
            with pytest.raises(Refusal, match="There was a field manager conflict") as refused:
                deployed.change(QUEUE, field_manager__force_conflicts=False)
            assert ".spec.stopPolicy" in refused.value.detail
    deployed.change(QUEUE, field_manager__force_conflicts=True)
    assert api.get(api.resource(API, "ClusterQueue"), "", "tpu-training")["spec"].get("stopPolicy", "None") == "None"


def test_labels_that_others_add_to_an_object_do_no_harm(deployed: FakeCloud, api: Api) -> None:
    api.patch(api.resource(API, "ClusterQueue"), "", "tpu-training", {"metadata": {"labels": {"theirs": "1"}}})
    before = deployed.read(QUEUE)
    assert deployed.plan(QUEUE)[0] == before


def test_an_object_under_another_name_is_another_object(deployed: FakeCloud) -> None:
    manifest = {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "other"}, "spec": {}}
    assert deployed.plan(FLAVOR, manifest=manifest)[1] == [("manifest", "metadata", "name")]
    assert deployed.plan(TEAM, metadata=[{"name": "other"}])[1] == [("metadata", 0, "name")]


def test_labels_of_a_namespace_change_in_place_and_drift_shows(deployed: FakeCloud, api: Api) -> None:
    state = deployed.change(TEAM, metadata__labels={"tpuenv/team": "tpu-training", "more": "1"})
    assert api.get(NAMESPACE, "", "tpu-training")["metadata"]["labels"]["more"] == "1"
    api.patch(NAMESPACE, "", "tpu-training", {"metadata": {"labels": {"more": "2"}}})
    assert state["metadata"][0]["labels"]["more"] == "1"
    planned, replaced = deployed.plan(TEAM)
    assert (planned["metadata"][0]["labels"]["more"], replaced) == ("1", [])
    assert not deployed.unchanged(TEAM)


def test_an_object_that_is_gone_is_planned_again(deployed: FakeCloud, api: Api) -> None:
    api.remove(api.get(api.resource("v1", "ServiceAccount"), "tpu-training", "tpu-training"))
    assert deployed.read(ACCOUNT) is None


def test_queues_cannot_be_refreshed_once_their_crds_are_gone(deployed: FakeCloud) -> None:
    deployed.destroy(KUEUE_RELEASE)
    with pytest.raises(Refusal, match="Failed to determine GroupVersionResource for manifest"):
        deployed.read(QUEUE)


@pytest.mark.parametrize(
    ("type_", "more"),
    [
        ("kubernetes_role_v1", {"rule": [{"api_groups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]}),
        (
            "kubernetes_role_binding_v1",
            {
                "role_ref": [{"api_group": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}],
                "subject": [{"kind": "ServiceAccount", "name": "training", "namespace": "tpu-training"}],
            },
        ),
    ],
)
def test_a_second_plan_of_a_typed_resource_finds_nothing_to_do(
    deployed: FakeCloud, type_: str, more: dict[str, Any]
) -> None:
    address = f"{type_}.x"
    deployed.make(address, metadata=[{"name": "x", "namespace": "tpu-training", "labels": {"a": "1"}}], **more)
    assert deployed.unchanged(address)
    deployed.change(address, metadata__labels={"a": "2"})
    assert deployed.unchanged(address)
    deployed.destroy(address)


def test_a_change_is_refused_of_a_type_of_which_nobody_knows_what_replaces_it(
    deployed: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_provider, "missing_facts", lambda type_: [f'{type_}: "provider" is missing'])
    with pytest.raises(Refusal, match="does not know what a change of kubernetes_namespace_v1 replaces"):
        deployed.plan(TEAM, metadata__labels={"a": "c"})


def call(fake: FakeCloud, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"{fake.place.address}/clusters/{CLUSTER}{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/merge-patch+json"},
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_programs_speak_to_the_api_server_over_http(deployed: FakeCloud) -> None:
    queues = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
    assert call(deployed, "GET", f"{queues}/tpu-training")[1]["status"]["conditions"][0]["status"] == "True"
    held = {"spec": {"stopPolicy": "Hold"}}
    assert call(deployed, "PATCH", f"{queues}/tpu-training", held)[1]["spec"]["stopPolicy"] == "Hold"
    assert [item["metadata"]["name"] for item in call(deployed, "GET", queues)[1]["items"]] == ["tpu-training"]
    jobs = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/tpu-training/jobsets"
    assert call(deployed, "POST", f"{jobs}?dryRun=All", job_set())[0] == 200
    assert call(deployed, "GET", jobs)[1]["items"] == []
    assert call(deployed, "GET", "/api/v1/namespaces/tpu-training")[1]["status"]["phase"] == "Active"


def test_errors_over_http_are_status_objects(deployed: FakeCloud) -> None:
    code, body = call(deployed, "GET", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/none")
    assert (code, body["kind"], body["reason"]) == (404, "Status", "NotFound")
    assert body["message"] == 'clusterqueues.kueue.x-k8s.io "none" not found'
    assert call(deployed, "GET", "/apis/example.com/v1/things")[0] == 404
    code, body = call(deployed, "POST", "/api/v1/namespaces", {"metadata": {"name": "tpu-training"}})
    assert (code, body["reason"]) == (409, "AlreadyExists")


def test_the_kinds_of_kueue_are_those_of_its_chart() -> None:
    assert {item.kind for item in KUEUE} >= {"ClusterQueue", "LocalQueue", "ResourceFlavor", "Workload", "Cohort"}


def test_a_spec_whose_last_field_is_taken_out_of_the_manifest_is_refused(deployed: FakeCloud) -> None:
    flavor = {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "tpu"}, "spec": {}}
    with pytest.raises(Refusal, match='PATCH for resource "tpu" failed to apply') as refused:
        deployed.change(FLAVOR, manifest=flavor)
    assert 'spec: Invalid value: "null"' in refused.value.detail
    deployed.change(FLAVOR, manifest={**flavor, "spec": {"nodeLabels": {}}})
