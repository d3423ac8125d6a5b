"""Rules of the other Google services: each is broken once; and every type of theirs comes, stays and goes."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.fake import FakeCloud

CONNECTION = {"name": "github", "location": "us-east5"}

# One small configuration of each type that has no stack of its own yet.
CONFIGS: dict[str, dict[str, Any]] = {
    "google_secret_manager_secret": {"secret_id": "token", "replication": [{"auto": [{}]}]},
    "google_cloudbuild_trigger": {"location": "us-east5", "filename": "plan.yaml", "webhook_config": [{"secret": "s"}]},
    "google_cloudbuild_worker_pool": {"name": "private", "location": "us-east5"},
    "google_cloudbuildv2_connection": CONNECTION,
    "google_cloud_scheduler_job": {"name": "nightly", "region": "us-central1", "schedule": "0 4 * * *"},
    "google_logging_metric": {"name": "errors", "filter": "severity>=ERROR"},
    "google_logging_project_sink": {"name": "all", "destination": "storage.googleapis.com/logs"},
    "google_monitoring_notification_channel": {"type": "email", "labels": {"email_address": "a@example.com"}},
    "google_monitoring_alert_policy": {"display_name": "slow", "combiner": "OR"},
    "google_monitoring_dashboard": {"dashboard_json": '{"displayName": "TPUs"}'},
    "google_billing_budget": {"billing_account": "000000-000000-000000", "amount": [{"last_period_amount": True}]},
    "google_compute_global_address": {"name": "peering"},
    "google_artifact_registry_repository": {"repository_id": "images", "format": "DOCKER"},
    "google_vertex_ai_tensorboard": {"display_name": "experiments", "region": "us-central1"},
}


@pytest.fixture
def services(empty: FakeCloud) -> FakeCloud:
    for service in ("secretmanager", "cloudbuild", "cloudscheduler", "billingbudgets"):
        name = f"projects/my-project/services/{service}.googleapis.com"
        empty.cloud.put("google_project_service", name, {})
    return empty


@pytest.mark.parametrize("type_", CONFIGS)
def test_it_comes_stays_and_goes(services: FakeCloud, type_: str) -> None:
    made = services.make(f"{type_}.one", **CONFIGS[type_]).state
    assert made is not None
    assert services.unchanged(f"{type_}.one")
    services.destroy(f"{type_}.one")
    assert services.cloud.count(type_) == 0


@pytest.mark.parametrize("type_", ["google_vertex_ai_tensorboard", "google_monitoring_dashboard"])
def test_two_of_the_same_name_are_two_where_google_gives_the_name(services: FakeCloud, type_: str) -> None:
    ids = {str((services.make(f"{type_}.{name}", **CONFIGS[type_]).state or {})["id"]) for name in ("one", "two")}
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("type_", "changes", "words"),
    [
        ("google_artifact_registry_repository", {"repository_id": "Images"}, "Invalid repository_id 'Images'"),
        (
            "google_cloudbuild_trigger",
            {"service_account": "projects/p/serviceAccounts/x"},
            r"serviceAccounts/x does not exist",
        ),
        ("google_monitoring_dashboard", {"dashboard_json": "{"}, "Invalid dashboard"),
        ("google_monitoring_dashboard", {"dashboard_json": "{}"}, r"Field dashboard.displayName must be set"),
        ("google_monitoring_alert_policy", {"notification_channels": ["c"]}, "Could not find NotificationChannel c"),
    ],
)
def test_what_google_refuses(services: FakeCloud, type_: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        services.make(f"{type_}.one", **(CONFIGS[type_] | changes))


def test_a_repository_of_source_needs_its_connection(services: FakeCloud) -> None:
    parent = "projects/my-project/locations/us-east5/connections/github"
    config = {"name": "repo", "parent_connection": parent, "remote_uri": "https://github.com/a/b.git"}
    with pytest.raises(Refusal, match=f"Resource '{parent}' was not found"):
        services.make("google_cloudbuildv2_repository.r", **config)
    services.make("google_cloudbuildv2_connection.c", **CONNECTION)
    services.make("google_cloudbuildv2_repository.r", **config)
