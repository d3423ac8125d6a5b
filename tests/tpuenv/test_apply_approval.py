"""Asking for approval: a trigger is run again for the same commit, and its build waits in the fake Cloud Build."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal import http_server
from rehearsal.cloud import Cloud
from rehearsal.cloudbuild import builds
from rehearsal.cloudbuild.triggers import TRIGGER
from rehearsal.google.permissions import token_of
from rehearsal.serve import answers
from tpuenv.failure import Failed
from tpuenv.google import triggers
from tpuenv.google.clients import connect

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PLACE = "projects/my-project/locations/europe-west4/triggers"
DEPLOYER = "tpu-deploy@my-project.iam.gserviceaccount.com"


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """With one trigger that wants an approval, and the variables that make the clients meet it."""
    fake = Cloud(tmp_path / "cloud.db")
    server, address = http_server.start(answers(fake))
    monkeypatch.setenv("GOOGLE_CLOUD_BUILD_CUSTOM_ENDPOINT", f"{address}/v1/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(""))
    attributes = {
        "name": "tpu-deploy",
        "location": "europe-west4",
        "filename": "cloudbuild/deploy.yaml",
        "service_account": f"projects/my-project/serviceAccounts/{DEPLOYER}",
        "substitutions": {"_RECORDS": "gs://plans"},
        "approval_config": [{"approval_required": True}],
    }
    fake.put(TRIGGER, f"{PLACE}/1234", attributes)
    yield fake
    server.shutdown()
    server.server_close()
    fake.close()


def ask(name: str = "tpu-deploy", commit: str = COMMIT) -> str:
    trigger = triggers.trigger_name(name, project_id="my-project", location="europe-west4")
    return triggers.run_trigger(connect("my-project"), trigger=trigger, commit=commit)


def test_the_next_build_is_of_the_same_commit_and_waits_for_approval(cloud: Cloud) -> None:
    page = ask()
    (build,) = builds.builds(cloud)
    assert (build.status, build.commit, build.substitutions) == ("PENDING", COMMIT, {"_RECORDS": "gs://plans"})
    assert page == (
        f"https://console.cloud.google.com/cloud-build/builds;region=europe-west4/{build.id_}?project=my-project"
    )


def test_a_trigger_that_is_not_there_is_named(cloud: Cloud) -> None:
    with pytest.raises(Failed, match=r"run trigger projects/.*/triggers/tpu-other.* not found"):
        ask("tpu-other")


def test_a_trigger_of_another_region_is_another_trigger(cloud: Cloud) -> None:
    with pytest.raises(Failed, match="not found"):
        ask("projects/my-project/locations/us-east5/triggers/tpu-deploy")


def test_who_may_not_run_it_is_reported_what_is_missing(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(DEPLOYER))
    with pytest.raises(Failed, match=r"permission: .* may not run trigger .*cloudbuild\.builds\.create"):
        ask()
    assert builds.builds(cloud) == []


@pytest.mark.parametrize("commit", ["", "unknown", f"{COMMIT} (changed)", "main"])
def test_without_a_commit_nothing_is_run(cloud: Cloud, commit: str) -> None:
    with pytest.raises(Failed, match="COMMIT_SHA"):
        ask(commit=commit)
    assert builds.builds(cloud) == []
