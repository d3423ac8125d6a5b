"""By which ids `tpuenv recover` finds what a plan would create."""

from __future__ import annotations

from typing import Any

import pytest

from tpuenv.recovery.import_ids import PlannedObject, planned_objects

POOL = (
    "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p.svc.id.goog/subject/ns/a/sa/b"
)

KNOWN: dict[str, tuple[dict[str, Any], str]] = {
    "google_artifact_registry_repository": (
        {"location": "us-east5", "repository_id": "images"},
        "projects/p/locations/us-east5/repositories/images",
    ),
    "google_artifact_registry_repository_iam_member": (
        {"location": "us-east5", "repository": "projects/p/x/images", "role": "roles/r", "member": "user:a@b"},
        "projects/p/locations/us-east5/repositories/images roles/r user:a@b",
    ),
    "google_cloud_scheduler_job": ({"region": "us-east5", "name": "j"}, "projects/p/locations/us-east5/jobs/j"),
    "google_compute_network": ({"name": "n"}, "projects/p/global/networks/n"),
    "google_compute_router_nat": (
        {"region": "us-east5", "router": "r", "name": "n"},
        "projects/p/regions/us-east5/routers/r/n",
    ),
    "google_container_node_pool": (
        {"location": "us-east5", "cluster": "projects/p/locations/us-east5/clusters/c", "name": "n"},
        "p/us-east5/c/n",
    ),
    "google_project_iam_member": ({"role": "roles/r", "member": POOL}, f"p roles/r {POOL}"),
    "google_storage_bucket_iam_member": (
        {"bucket": "b", "role": "roles/r", "member": POOL, "condition": [{"title": "only some, here"}]},
        f"b/b roles/r {POOL} only some, here",
    ),
    "google_service_account": ({"email": "a@p.iam"}, "projects/p/serviceAccounts/a@p.iam"),
    "google_storage_bucket": ({"name": "b"}, "b"),
    "helm_release": ({"namespace": "kueue-system", "name": "kueue"}, "kueue-system/kueue"),
    "kubernetes_namespace_v1": ({"metadata": [{"name": "a"}]}, "a"),
    "kubernetes_role_binding_v1": ({"metadata": [{"name": "a", "namespace": "n"}]}, "n/a"),
    "kubernetes_manifest": (
        {"manifest": {"apiVersion": "x/v1", "kind": "K", "metadata": {"namespace": "n", "name": "a"}}},
        "apiVersion=x/v1,kind=K,namespace=n,name=a",
    ),
}


@pytest.mark.parametrize("type_", KNOWN)
def test_an_id_has_the_form_that_the_provider_documents(type_: str) -> None:
    values, id_ = KNOWN[type_]
    assert PlannedObject(address=f"{type_}.x", type_=type_, values={"project": "p", **values}).import_id == id_


@pytest.mark.parametrize("type_", KNOWN)
def test_what_is_not_known_before_something_else_exists_has_no_id_yet(type_: str) -> None:
    values, _ = KNOWN[type_]
    key = [key for key in values if key not in ("location", "region", "condition")][-1]
    missing = {name: value for name, value in values.items() if name != key}
    assert PlannedObject(address=f"{type_}.x", type_=type_, values={"project": "p", **missing}).import_id is None


def change(type_: str, actions: list[str], **after: Any) -> dict[str, Any]:
    return {"address": f"{type_}.x", "mode": "managed", "type": type_, "change": {"actions": actions, "after": after}}


def test_only_what_would_be_created_has_an_id_with_the_providers_places() -> None:
    plan = {
        "resource_changes": [
            change("google_compute_network", ["create"], name="n", project=None),
            change("google_compute_subnetwork", ["create"], name="s", region="us-central1"),
            change("google_compute_router", ["update"], name="r"),
            change("google_compute_firewall", ["delete", "create"], name="f"),
            change("terraform_data", ["create"]),
            change("google_project_service", ["create"], service="compute.googleapis.com"),
        ]
    }
    configuration = {"provider": {"google": [{"project": "p", "region": "us-east5"}]}}
    assert [planned.import_id for planned in planned_objects(plan, configuration)] == [
        "projects/p/global/networks/n",
        "projects/p/regions/us-central1/subnetworks/s",
    ]
