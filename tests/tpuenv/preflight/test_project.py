"""The rows about the login, the project, its billing account, its APIs and the caller's permissions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.google_project import FakeProject
from tests.google_replies import error, switched_off
from tests.loading import loaded
from tpuenv.preflight import permissions, project

PROJECT = r"/v3/projects/some-project\Z"


@pytest.mark.parametrize(
    ("status", "body", "what", "verdict", "words"),
    [
        (401, error(401, "UNAUTHENTICATED", "Invalid credentials"), "login", "missing", "does not accept"),
        (403, error(403, "PERMISSION_DENIED", "The caller has no permission"), "project", "missing", "does not exist"),
        (404, error(404, "NOT_FOUND", "No such project"), "project", "missing", "does not exist"),
        (400, error(400, "INVALID_ARGUMENT", "Bad name"), "project", "unknown", "400: Bad name"),
        (503, error(503, "UNAVAILABLE", "Busy"), "project", "unknown", "503: Busy"),
        (200, b"<html>", "login", "unknown", "did not answer with a JSON object"),
        (200, [], "login", "unknown", "did not answer with a JSON object"),
        (200, {}, "the rest of these checks", "unknown", "another form than documented"),
        (200, {"name": "projects/1", "state": "DELETE_REQUESTED"}, "project", "missing", "delete requested"),
    ],
)
def test_without_the_project_nothing_else_is_asked(
    google: FakeProject, status: int, body: Any, what: str, verdict: str, words: str
) -> None:
    google.reply(PROJECT, body, status=status)
    rows = google.report()
    assert (rows[what].verdict.value, words in rows[what].have) == (verdict, True), rows[what]
    assert rows[what].fix
    assert rows["everything else"].verdict.value == "not asked"
    assert set(google.requests) == {"GET /v3/projects/some-project"}


def test_a_server_that_does_not_answer_is_no_missing_login(
    google: FakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_RESOURCE_MANAGER_V3_CUSTOM_ENDPOINT", "http://127.0.0.1:1/v3/")
    rows = google.report()
    assert rows["login"].verdict.value == "unknown"
    assert rows["login"].have.startswith("no answer: ")
    assert "HTTPS_PROXY" in rows["login"].fix


def test_a_new_project_whose_apis_are_off_is_asked_for_all_the_rest(google: FakeProject) -> None:
    for host, path in (("cloudresourcemanager", "/v3/"), ("cloudbilling", "billingInfo"), ("compute", "/compute/v1")):
        google.reply(path, switched_off(f"{host}.googleapis.com"), status=403)
    for service in ("compute", "cloudscheduler"):
        google.cloud.delete("google_project_service", f"projects/some-project/services/{service}.googleapis.com")
    rows = google.report()
    assert rows["project"].have == "cloudresourcemanager.googleapis.com is off"
    assert rows["billing account"].fix == "gcloud services enable cloudbilling.googleapis.com --project=some-project"
    assert (rows["APIs"].have, rows["APIs"].fix) == ("off: compute, cloudscheduler", "tpuenv bootstrap")
    for what in ("compute.admin", "NETWORKS", "N2_CPUS", "machine type n2-standard-8", "network tpu-network"):
        assert rows[what].verdict.value == "unknown", what
    assert rows["GKE version"].verdict.value == rows["cluster tpu-cluster"].verdict.value == "ok"


def test_a_wrong_project_number_is_missing(google: FakeProject) -> None:
    row = google.report(PROJECT_NUMBER="99999")["project"]
    assert (row.verdict.value, row.have) == ("missing", "its number is 123456789012")
    assert row.fix == "set PROJECT_NUMBER=123456789012, or leave it empty"


@pytest.mark.parametrize(
    ("body", "have"),
    [
        ({"billingAccountName": "", "billingEnabled": False}, "none"),
        ({"billingEnabled": False}, "none"),
        ({"billingAccountName": "billingAccounts/0-1-2", "billingEnabled": False}, "0-1-2 is closed"),
    ],
)
def test_a_project_without_an_open_billing_account_cannot_pay(
    google: FakeProject, body: dict[str, Any], have: str
) -> None:
    google.reply("billingInfo", body)
    row = google.rows(project.CHECK)["billing account"]
    assert (row.verdict.value, row.have) == ("missing", have)
    assert row.fix.startswith("gcloud billing projects link some-project ")


def test_who_may_not_use_the_project_as_quota_project_gets_that_role(google: FakeProject) -> None:
    refused = error(403, "PERMISSION_DENIED", "Caller does not have required permission", reason="USER_PROJECT_DENIED")
    google.reply("billingInfo", refused, status=403)
    row = google.rows(project.CHECK)["billing account"]
    assert row.have == "takes serviceusage.services.use"
    assert row.fix.endswith("--role=roles/serviceusage.serviceUsageConsumer")


@pytest.mark.parametrize("body", [{}, {"permissions": []}, {"permissions": ["compute.networks.get"]}])
def test_permissions_that_are_missing_are_named_with_the_role_that_has_them(
    google: FakeProject, body: dict[str, Any]
) -> None:
    google.reply("testIamPermissions", body)
    row = google.rows(permissions.CHECK)["compute.admin"]
    assert row.verdict.value == "missing"
    assert row.have.startswith("without compute.") and " more" in row.have
    assert row.fix == (
        "gcloud projects add-iam-policy-binding some-project --member=user:YOUR_EMAIL --role=roles/compute.admin"
    )


def test_permissions_are_those_of_the_types_that_the_environment_has_by_role() -> None:
    default, pipeline = (
        loaded(),
        loaded(PROJECT_ID="some-project", BUILD_REPOSITORY=REPOSITORY, BUILDER_IMAGE=f"a.b/c@sha256:{'0' * 64}"),
    )
    assert "roles/owner" not in permissions.needed(pipeline)
    assert "roles/cloudscheduler.admin" not in permissions.needed(default)
    assert "roles/cloudscheduler.admin" in permissions.needed(pipeline)
    assert max(len(names) for names in permissions.needed(pipeline).values()) <= 100  # Google's limit for a request
    images = {name for names in permissions.needed(default).values() for name in names}
    assert {"cloudbuild.builds.create", "iam.serviceAccounts.actAs", "storage.objects.create"} <= images


REPOSITORY = "projects/some-project/locations/us-east5/connections/github/repositories/tpu"
