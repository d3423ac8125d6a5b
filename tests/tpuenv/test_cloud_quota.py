"""Which project pays for a request: a person's own choice of credentials names it, a service account's does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from rehearsal import http_server
from rehearsal.cloud import Cloud
from rehearsal.google.cloud_storage_api import BUCKET
from rehearsal.google.permissions import PROJECT_MEMBER, token_of
from rehearsal.serve import answers
from tests.loading import loaded
from tpuenv.google.clients import connect
from tpuenv.review import records
from tpuenv.review.records import Record

BUILDER = "tpu-deploy@my-project.iam.gserviceaccount.com"
RECORD = Record(stack="s", commit="c", digest="d", terraform="1")


def key() -> str:
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return made.private_bytes(encoding, form, serialization.NoEncryption()).decode()


PERSON = {"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r"}
FEDERATED_PERSON = {
    "type": "external_account_authorized_user",
    "audience": "//iam.googleapis.com/locations/global/workforcePools/pool/providers/provider",
    "refresh_token": "r",
    "token_url": "https://sts.googleapis.com/v1/oauthtoken",
    "client_id": "i",
    "client_secret": "s",
}
ACCOUNT = {"type": "service_account", "client_email": BUILDER, "token_uri": "https://oauth2.googleapis.com/token"}
IMPERSONATED = {
    "type": "impersonated_service_account",
    "service_account_impersonation_url": "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/"
    f"{BUILDER}:generateAccessToken",
    "source_credentials": PERSON,
    "quota_project_id": "elsewhere",
}
FEDERATED_WORKLOAD = {
    "type": "external_account",
    "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/provider",
    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    "token_url": "https://sts.googleapis.com/v1/token",
    "credential_source": {"file": "/nowhere"},
}


@pytest.mark.parametrize(
    ("described", "pays"),
    [
        (PERSON, "my-project"),
        (PERSON | {"quota_project_id": "elsewhere"}, "my-project"),
        (FEDERATED_PERSON, "my-project"),
        (ACCOUNT, None),
        (IMPERSONATED, None),
        (FEDERATED_WORKLOAD, None),
    ],
)
def test_a_person_names_the_project_that_pays_and_a_service_account_names_none(
    described: dict[str, Any], pays: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if described is ACCOUNT:
        described = ACCOUNT | {"private_key": key()}
    (tmp_path / "credentials.json").write_text(json.dumps(described))
    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "credentials.json"))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")
    assert connect("my-project").session.credentials.quota_project_id == pays
    monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "chosen")
    assert connect("my-project").session.credentials.quota_project_id == "chosen"


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of the fake services, in a project whose build account may write a bucket and no more."""
    cloud = Cloud(tmp_path / "cloud.db")
    cloud.put(BUCKET, "plans", {"name": "plans", "project": "my-project", "location": "us-east5"})
    member = f"serviceAccount:{BUILDER}"
    grant = {"bucket": "plans", "role": "roles/storage.objectUser", "member": member}
    cloud.put("google_storage_bucket_iam_member", "plans/user", grant)
    grant = {
        "project": "my-project",
        "role": "roles/serviceusage.serviceUsageConsumer",
        "member": f"serviceAccount:other-{BUILDER}",
    }
    cloud.put(PROJECT_MEMBER, "my-project/consumer", grant)
    server, url = http_server.start(answers(cloud))
    monkeypatch.setenv("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", f"{url}/storage/v1/")
    yield url
    server.shutdown()
    server.server_close()
    cloud.close()


def test_a_build_writes_its_records_without_the_right_to_use_the_project(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(BUILDER))
    kept = records.store("gs://plans", loaded())
    kept.write(RECORD)
    assert kept.read("d", "s") == RECORD


def get(address: str, path: str, account: str) -> requests.Response:
    headers = {"Authorization": f"Bearer {token_of(account)}", "X-Goog-User-Project": "my-project"}
    return requests.get(f"{address}{path}", headers=headers, timeout=10)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (
            "/storage/v1/b/plans/o",
            f"{BUILDER} does not have serviceusage.services.use access to the Google Cloud project.",
        ),
        (
            "/v1/projects/my-project/locations/us-central1/builds/1",
            "Caller does not have required permission to use project my-project. Grant the caller the "
            "roles/serviceusage.serviceUsageConsumer role",
        ),
    ],
)
def test_who_names_a_project_without_the_right_to_use_it_is_refused(address: str, path: str, words: str) -> None:
    refused = get(address, path, BUILDER)
    assert refused.status_code == 403
    assert refused.json()["error"]["message"].startswith(words)
    for may in ("", f"other-{BUILDER}"):
        assert words not in get(address, path, may).text
