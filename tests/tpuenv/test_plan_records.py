"""Records in a bucket: Google's own client, against the fake Cloud Storage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rehearsal import http_server
from rehearsal.cloud import Cloud
from rehearsal.google.cloud_storage_api import BUCKET
from rehearsal.google.permissions import token_of
from rehearsal.serve import answers
from tests.loading import loaded
from tpuenv.failure import Failed
from tpuenv.review import records
from tpuenv.review.changes import Change, Changes
from tpuenv.review.records import Record
from tpuenv.terraform.stacks import Stack

RECORD = Record(
    stack="cluster",
    commit="c",
    digest="d" * 64,
    terraform="1.11.4",
    changes=Changes(resources=(Change(address="google_thing.one", action="delete"),)),
)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """With a bucket "plans"."""
    fake = Cloud(tmp_path / "cloud.db")
    fake.put(BUCKET, "plans", {"name": "plans", "project": "my-project", "location": "us-east5"})
    server, address = http_server.start(answers(fake))
    monkeypatch.setenv("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", f"{address}/storage/v1/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(""))
    yield fake
    server.shutdown()
    server.server_close()
    fake.close()


def test_a_record_is_kept_under_its_content_and_its_stack(cloud: Cloud) -> None:
    kept = records.store("gs://plans", loaded())
    assert kept.read(RECORD.digest, "cluster") is None
    assert kept.write(RECORD) == f"gs://plans/{'d' * 64}/cluster.json"
    assert kept.read(RECORD.digest, "cluster") == RECORD
    assert kept.read(RECORD.digest, "queues") is None
    (blob,) = cloud.blobs("plans")
    assert blob.content.decode() == RECORD.text


def test_who_plans_adds_a_record_once_and_is_told_when_there_is_one(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, place = records.store("gs://plans", loaded()), f"gs://plans/{'d' * 64}/cluster.json"
    assert kept.add(RECORD) == f"recorded in {place}"
    other = replace(RECORD, commit="other")
    assert kept.add(other).startswith(f"not recorded: {place} is there, of an earlier plan of the same content")
    plan = "plan@my-project.iam.gserviceaccount.com"
    creator = {"bucket": "plans", "role": "roles/storage.objectCreator", "member": f"serviceAccount:{plan}"}
    cloud.put("google_storage_bucket_iam_member", "plans creator", creator)
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of(plan))
    who_plans = records.store("gs://plans", loaded())
    assert who_plans.add(other).startswith(f"not recorded: {place} is there")
    assert who_plans.add(replace(other, stack="queues")).startswith("recorded in ")
    with pytest.raises(Failed, match=r"storage\.objects\.delete access"):
        who_plans.write(other)
    assert kept.read(RECORD.digest, "cluster") == RECORD


def test_a_bucket_that_is_not_there_is_not_taken_for_one_without_records(cloud: Cloud) -> None:
    kept = records.store("gs://other", loaded())
    for use in (
        lambda: kept.read(RECORD.digest, "cluster"),
        lambda: kept.write(RECORD),
        lambda: kept.add(RECORD),
    ):
        with pytest.raises(Failed, match=r"gs://other: there is no such bucket; .*tpuenv deploy foundation pipeline"):
            use()


def test_who_may_not_write_is_reported_which_role_does(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token_of("somebody@my-project.iam.gserviceaccount.com"))
    with pytest.raises(Failed, match=r"may not write the record of a plan in gs://plans .*storage\.objects\.create"):
        records.store("gs://plans", loaded()).add(RECORD)


@pytest.mark.parametrize("destination", ["gs://", "gs:///", "gs://Plans", "gs://plans/folder"])
def test_what_is_no_bucket_is_refused(destination: str) -> None:
    with pytest.raises(Failed, match="is not a bucket; write gs://BUCKET"):
        records.store(destination, loaded())


def stacks(folder: Path, **contents: str) -> list[Stack]:
    """By name, with underscores for slashes: their files."""
    made = {}
    for path, text in contents.items():
        name = path.partition("__")[0]
        file = folder / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        made[name] = Stack(name=name, folder=folder / name)
    for name in made:
        (folder / name / "cdk.tf.json").touch()
    return list(made.values())


def test_the_digest_is_of_the_content_and_not_of_the_place_or_the_order(tmp_path: Path) -> None:
    content = {"a__assets__chart__values": "1", "b__assets__chart__values": "2"}
    first = records.digest(stacks(tmp_path / "one", **content))
    assert records.digest(reversed(stacks(tmp_path / "two", **content))) == first
    (tmp_path / "two" / "a" / ".terraform").mkdir()
    (tmp_path / "two" / "a" / ".terraform" / "x").write_text("left by Terraform")
    assert records.digest(stacks(tmp_path / "two", **content)) == first


@pytest.mark.parametrize(
    "other",
    [
        {"a__assets__chart__values": "1", "b__assets__chart__values": "3"},
        {"a__assets__chart__values": "1", "b__assets__chart__other": "2"},
        {"a__assets__chart__values": "1"},
        {"a__assets__chart__values": "1", "b__assets__chart__values": "2", "b__assets__x": ""},
    ],
)
def test_the_digest_of_anything_else_is_another(tmp_path: Path, other: dict[str, str]) -> None:
    content = {"a__assets__chart__values": "1", "b__assets__chart__values": "2"}
    assert records.digest(stacks(tmp_path / "one", **content)) != records.digest(stacks(tmp_path / "two", **other))


def test_cloud_build_says_which_commit_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMIT_SHA", "a" * 40)
    assert records.commit() == "a" * 40


def test_without_git_the_commit_is_not_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("COMMIT_SHA", raising=False)
    monkeypatch.setattr("environment.project.ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert records.commit() == "unknown"
