"""Rules of buckets and registries: each is broken once."""

from __future__ import annotations

import pytest

from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.fake import FakeCloud

BUCKET = "google_storage_bucket.bucket-tpu-training"
MEMBER = "google_storage_bucket_iam_member.team-tpu-training_bucket-objects_6886DCA5"
REGISTRY = "google_artifact_registry_repository.registry"
READER = "google_artifact_registry_repository_iam_member.registry-reader"
NAME = "my-project-tpu-tpu-training"


@pytest.mark.parametrize("name", ["ab", "Bucket", "my-google-bucket", "goog-data", "b" * 64, "1.2.3.4", "-b-"])
def test_a_bucket_name_that_google_refuses(empty: FakeCloud, name: str) -> None:
    with pytest.raises(Refusal, match="Error creating bucket: googleapi: Error 400: Invalid bucket name"):
        empty.make("google_storage_bucket.b", name=name, location="us-east5")


def test_a_bucket_name_is_taken_for_everybody(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match="409: The requested bucket name is not available"):
        deployed.make("google_storage_bucket.two", like=BUCKET)


def test_a_bucket_lies_where_google_has_places(empty: FakeCloud) -> None:
    with pytest.raises(Refusal, match="The specified location constraint is not valid: 'MOON'"):
        empty.make("google_storage_bucket.b", name="some-data", location="moon")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"uniform_bucket_level_access": False}, "requires uniform bucket-level access"),
        ({"versioning": [{"enabled": True}]}, "do not support object versioning"),
        ({"retention_policy": [{"retention_period": "60"}]}, "do not support a bucket retention policy"),
    ],
)
def test_a_hierarchical_namespace_excludes_some_things(
    deployed: FakeCloud, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(Refusal, match=words):
        deployed.again(BUCKET, **changes)


def test_a_bucket_with_objects_is_kept_unless_forced(deployed: FakeCloud) -> None:
    deployed.cloud.put_blob(NAME, "checkpoints/1", b"weights", {}, keep_old=False)
    with pytest.raises(
        Refusal, match=f"Error trying to delete bucket {NAME} containing objects without `force_destroy`"
    ):
        deployed.destroy(BUCKET)
    deployed.change(BUCKET, force_destroy=True)
    deployed.destroy(BUCKET)
    assert deployed.cloud.blobs(NAME) == []


def test_a_member_of_a_bucket_needs_the_bucket(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match="404: The specified bucket does not exist"):
        deployed.make("google_storage_bucket_iam_member.two", like=MEMBER, bucket="nowhere")


def test_drift_of_a_bucket_is_planned_back(deployed: FakeCloud) -> None:
    deployed.cloud.change(
        "google_storage_bucket", NAME, lambda values: values.update(public_access_prevention="inherited")
    )
    planned, replaced = deployed.plan(BUCKET)
    assert (planned["public_access_prevention"], replaced) == ("enforced", [])


def test_a_bucket_that_is_gone_is_planned_again(deployed: FakeCloud) -> None:
    deployed.cloud.delete("google_storage_bucket", NAME)
    assert deployed.read(BUCKET) is None


def test_moving_a_bucket_replaces_it(deployed: FakeCloud) -> None:
    assert deployed.plan(BUCKET, location="us-central1")[1] == [("location",)]


def test_a_registry_that_exists_is_409(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match="Error creating Repository: googleapi: Error 409: the repository already exists"):
        deployed.make("google_artifact_registry_repository.two", like=REGISTRY)


def test_a_member_of_a_registry_needs_the_registry(deployed: FakeCloud) -> None:
    with pytest.raises(
        Refusal, match='Requested entity was not found: "projects/my-project/locations/us-east5/repositories/x"'
    ):
        deployed.make("google_artifact_registry_repository_iam_member.two", like=READER, repository="x")


def test_a_cleanup_policy_that_deletes_everything_is_refused(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match="Cleanup policy 'all' of action DELETE needs a condition"):
        deployed.change(REGISTRY, cleanup_policies=[{"id": "all", "action": "DELETE"}])


def test_labels_come_from_provider_and_resource(deployed: FakeCloud) -> None:
    ours = {"environment": "tpu", "stack": "foundation", "goog-terraform-provisioned": "true"}
    state = deployed.change(REGISTRY, labels={"mine": "1"})
    assert state["labels"] == {"mine": "1"}
    assert state["terraform_labels"] == state["effective_labels"] == ours | {"mine": "1"}


def test_a_label_that_somebody_added_stays_and_one_that_somebody_changed_goes_back(deployed: FakeCloud) -> None:
    name = "projects/my-project/locations/us-east5/repositories/tpu-images"
    type_ = "google_artifact_registry_repository"
    deployed.cloud.change(type_, name, lambda values: values["effective_labels"].update(theirs="1"))
    assert deployed.plan(REGISTRY)[0]["effective_labels"]["theirs"] == "1"
    deployed.cloud.change(type_, name, lambda values: values["effective_labels"].update(stack="other"))
    assert deployed.plan(REGISTRY)[0]["effective_labels"]["stack"] == "foundation"
