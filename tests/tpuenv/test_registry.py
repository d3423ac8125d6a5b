"""The digest of an image: asked of the registry's REST API, and every other answer explained."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal import http_server
from rehearsal.cloud import Cloud
from rehearsal.google.artifact_registry_api import REPOSITORY, push
from rehearsal.google.permissions import token_of
from rehearsal.serve import answers
from tpuenv.failure import Failed
from tpuenv.google.clients import Patience, connect
from tpuenv.google.registry import by_digest

READER = "reader@my-project.iam.gserviceaccount.com"
NAME = "projects/my-project/locations/us-east5/repositories/tpu-images"
IMAGE = "us-east5-docker.pkg.dev/my-project/tpu-images/hello-tpu"


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """A registry with one image, and the variables that make the clients meet it."""
    fake = Cloud(tmp_path / "cloud.db")
    server, address = http_server.start(answers(fake))
    monkeypatch.setenv("GOOGLE_ARTIFACT_REGISTRY_CUSTOM_ENDPOINT", f"{address}/v1/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(""))
    fake.put(REPOSITORY, NAME, {"name": "tpu-images", "location": "us-east5"})
    push(fake, f"{IMAGE}:0123456789ab")
    yield fake
    server.shutdown()
    server.server_close()
    fake.close()


def asked(reference: str) -> str | None:
    clients = connect("my-project")
    return by_digest(dataclasses.replace(clients, patience=Patience(answer=5, again=0.2, poll=0.1)), reference)


def test_a_tag_is_answered_with_the_image_by_its_digest(cloud: Cloud) -> None:
    assert re.fullmatch(f"{IMAGE}@sha256:[0-9a-f]{{64}}", asked(f"{IMAGE}:0123456789ab") or "")


@pytest.mark.parametrize("image", [f"{IMAGE}:ffffffffffff", f"{IMAGE}-other:0123456789ab"])
def test_an_image_that_nobody_has_pushed_has_no_digest(cloud: Cloud, image: str) -> None:
    assert asked(image) is None


def test_a_registry_that_does_not_exist_is_reported_with_what_creates_it(cloud: Cloud) -> None:
    cloud.delete(REPOSITORY, NAME)
    with pytest.raises(Failed, match=r"registry: 'tpu-images' does not exist in .* `tpuenv deploy foundation` creates"):
        asked(f"{IMAGE}:ffffffffffff")


def test_who_may_not_read_the_registry_is_shown_the_role(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(READER))
    with pytest.raises(Failed, match=r"(?s)may not read image .*tags\.get.*--role=roles/artifactregistry\.reader"):
        asked(f"{IMAGE}:0123456789ab")


def test_a_reader_of_the_registry_may_ask(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"repository": NAME, "role": "roles/artifactregistry.reader", "member": f"serviceAccount:{READER}"}
    cloud.put("google_artifact_registry_repository_iam_member", "reader", values)
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(READER))
    assert asked(f"{IMAGE}:0123456789ab")
    assert asked(f"{IMAGE}:ffffffffffff") is None


def test_a_registry_that_does_not_answer_is_a_network_problem(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_ARTIFACT_REGISTRY_CUSTOM_ENDPOINT", "http://127.0.0.1:1/v1/")
    with pytest.raises(Failed, match="network: no answer"):
        asked(f"{IMAGE}:0123456789ab")


@pytest.mark.parametrize("reference", ["hello-tpu", IMAGE, f"{IMAGE}@sha256:00", "docker.io/library/python:3.12"])
def test_another_kind_of_reference_is_an_error_of_the_caller(cloud: Cloud, reference: str) -> None:
    with pytest.raises(ValueError, match="is not an image with a tag in Artifact Registry"):
        asked(reference)


@pytest.mark.nested_too_deeply
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 100_000, b"null", b"[]", b"{}", b'{"version": 1}', b'{"version": "a/b"}']
)
def test_an_answer_that_names_no_version_is_an_error_and_no_traceback(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = http_server.start(lambda _: http_server.Response(body=body))
    monkeypatch.setenv("GOOGLE_ARTIFACT_REGISTRY_CUSTOM_ENDPOINT", f"{address}/v1/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(""))
    with pytest.raises(Failed, match="hello-tpu:0123456789ab names no version; run this again"):
        asked(f"{IMAGE}:0123456789ab")
    server.shutdown()
    server.server_close()
