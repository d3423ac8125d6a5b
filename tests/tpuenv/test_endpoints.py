"""The addresses at which the commands call Google's services."""

from __future__ import annotations

import re

import pytest

from environment.project import ROOT
from tpuenv.google import endpoints
from vocabulary.resource_types import all_types, facts_of, fill

_FAKE = "http://127.0.0.1:8080"


@pytest.mark.parametrize(
    ("host", "variable", "value"),
    [
        ("storage.googleapis.com", "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", f"{_FAKE}/storage/v1/"),
        ("us-east5-aiplatform.googleapis.com", "GOOGLE_VERTEX_AI_CUSTOM_ENDPOINT", f"{_FAKE}/v1/"),
        ("cloudbuild.googleapis.com", "GOOGLE_CLOUD_BUILD_CUSTOM_ENDPOINT", f"{_FAKE}/v1"),
        ("cloudbuild.googleapis.com", "GOOGLE_CLOUD_BUILD_CUSTOM_ENDPOINT", _FAKE),
        ("artifactregistry.googleapis.com", "GOOGLE_ARTIFACT_REGISTRY_CUSTOM_ENDPOINT", f"{_FAKE}/v1/"),
        ("container.googleapis.com", "GOOGLE_CONTAINER_CUSTOM_ENDPOINT", f"{_FAKE}/v1/"),
        ("compute.googleapis.com", "GOOGLE_COMPUTE_CUSTOM_ENDPOINT", f"{_FAKE}/compute/v1/"),
        ("cloudresourcemanager.googleapis.com", "GOOGLE_RESOURCE_MANAGER_V3_CUSTOM_ENDPOINT", f"{_FAKE}/v3/"),
    ],
)
def test_a_service_is_where_the_providers_variable_says(
    host: str, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable, raising=False)
    assert endpoints.url(host) == f"https://{host}"
    monkeypatch.setenv(variable, value)
    assert endpoints.url(host) == _FAKE
    assert endpoints.url("pubsub.googleapis.com") == "https://pubsub.googleapis.com"


@pytest.mark.parametrize("type_", [type_ for type_ in all_types() if facts_of(type_).listing])
def test_a_rehearsal_can_answer_for_the_lists_of_a_type(type_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in re.findall(r"GOOGLE_\w+_CUSTOM_ENDPOINT", (ROOT / "rehearsal" / "world.py").read_text()):
        monkeypatch.setenv(variable, f"{_FAKE}/v1/")
    listing = facts_of(type_).listing
    assert listing is not None
    assert endpoints.url(fill(listing.host, {"region": "us-east5"}) or listing.host) == _FAKE


def test_an_access_token_and_a_place_are_all_that_is_needed_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    from tpuenv.google.clients import connect

    monkeypatch.setenv("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", f"{_FAKE}/storage/v1/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "token")
    clients = connect("my-project")
    assert clients.storage._connection.build_api_url("/b/states").startswith(f"{_FAKE}/storage/v1/b/states")
    assert clients.session.credentials.token == "token"
