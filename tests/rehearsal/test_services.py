"""Rules of the other Google services: each is broken once; and every type of theirs comes, stays and goes."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.fake import FakeCloud

# One small configuration of each type that has no stack of its own yet.
CONFIGS: dict[str, dict[str, Any]] = {
    "google_cloudbuild_trigger": {"location": "us-east5", "filename": "plan.yaml", "webhook_config": [{"secret": "s"}]},
    "google_cloud_scheduler_job": {"name": "nightly", "region": "us-central1", "schedule": "0 4 * * *"},
    "google_artifact_registry_repository": {"repository_id": "images", "format": "DOCKER"},
    "google_vertex_ai_tensorboard": {"display_name": "experiments", "region": "us-central1"},
}


@pytest.fixture
def services(empty: FakeCloud) -> FakeCloud:
    for service in ("cloudbuild", "cloudscheduler"):
        name = f"projects/my-project/services/{service}.googleapis.com"
        empty.cloud.put("google_project_service", name, {})
    return empty


@pytest.mark.parametrize("type_", CONFIGS)
def test_it_comes_stays_and_goes(services: FakeCloud, type_: str) -> None:
    made = services.make(f"{type_}.one", **CONFIGS[type_]).state
    assert made is not None
    assert services.unchanged(f"{type_}.one")
    services.destroy(f"{type_}.one")
    assert services.cloud.find(type_) == []


@pytest.mark.parametrize("type_", ["google_vertex_ai_tensorboard", "google_cloudbuild_trigger"])
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
    ],
)
def test_what_google_refuses(services: FakeCloud, type_: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        services.make(f"{type_}.one", **(CONFIGS[type_] | changes))
