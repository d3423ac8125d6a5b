"""Rules of identities: each is broken once."""

from __future__ import annotations

import pytest

from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.fake import FakeCloud

ACCOUNT = "google_service_account.node-account"
MEMBER = "google_project_iam_member.node-account-role"
WRITER = "google_project_iam_custom_role.tensorboard-writer"
WORKLOAD = "google_storage_bucket_iam_member.team-tpu-training_bucket-objects_6886DCA5"

POOL = "principal://iam.googleapis.com/projects/{}/locations/global/workloadIdentityPools/{}/subject/ns/a/sa/b"


@pytest.mark.parametrize("id_", ["short", "x" * 31, "Upper-case", "9nodes-account"])
def test_an_account_id_that_google_refuses(empty: FakeCloud, id_: str) -> None:
    with pytest.raises(
        Refusal, match="Error creating service account: googleapi: Error 400: Invalid service account id"
    ):
        empty.make("google_service_account.a", account_id=id_)


def test_an_account_that_exists_is_409(deployed: FakeCloud) -> None:
    with pytest.raises(
        Refusal, match=r"409: Service account tpu-nodes@my-project.iam.gserviceaccount.com already exists"
    ):
        deployed.make("google_service_account.two", like=ACCOUNT)


def test_email_and_member_are_known_at_plan(empty: FakeCloud) -> None:
    state = empty.make("google_service_account.a", account_id="some-nodes").state
    assert state is not None
    assert state["member"] == "serviceAccount:some-nodes@my-project.iam.gserviceaccount.com"
    planned, _ = empty.plan("google_service_account.a", account_id="other-nodes")
    assert planned["email"] == state["email"], "a replacement plans them again"


def test_a_member_must_be_an_account_that_exists(deployed: FakeCloud) -> None:
    member = "serviceAccount:nobody@my-project.iam.gserviceaccount.com"
    with pytest.raises(
        Refusal, match=r"400: Service account nobody@my-project.iam.gserviceaccount.com does not exist."
    ):
        deployed.make("google_project_iam_member.two", like=MEMBER, member=member)


@pytest.mark.parametrize("member", ["nobody", "robot:x@y.z", ""])
def test_a_member_that_is_not_of_a_known_form_is_refused(deployed: FakeCloud, member: str) -> None:
    with pytest.raises(Refusal, match="Invalid value for IAM member"):
        deployed.make("google_project_iam_member.two", like=MEMBER, member=member)


@pytest.mark.parametrize("role", ["storage.objectUser", "roles/", "projects/my-project/roles/nothing"])
def test_a_role_must_exist(deployed: FakeCloud, role: str) -> None:
    with pytest.raises(Refusal, match=f"400: Role {role} is not supported for this resource"):
        deployed.make("google_project_iam_member.two", like=MEMBER, role=role)


def test_a_bucket_role_is_not_for_projects(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match=r"Role roles/storage.legacyBucketReader is not supported"):
        deployed.make("google_project_iam_member.two", like=MEMBER, role="roles/storage.legacyBucketReader")


def test_the_identity_pool_is_there_only_with_a_cluster(deployed: FakeCloud) -> None:
    deployed.cloud.delete("google_container_cluster", "projects/my-project/locations/us-east5/clusters/tpu-cluster")
    with pytest.raises(
        Refusal, match=r"Identity Pool does not exist \(my-project.svc.id.goog\). Please check that you"
    ):
        deployed.again(WORKLOAD)


def test_a_cluster_without_workload_identity_makes_no_pool(deployed: FakeCloud) -> None:
    deployed.cloud.change(
        "google_container_cluster",
        "projects/my-project/locations/us-east5/clusters/tpu-cluster",
        lambda cluster: cluster.update(workload_identity_config=[]),
    )
    with pytest.raises(Refusal, match=r"Identity Pool does not exist \(my-project.svc.id.goog\)"):
        deployed.again(WORKLOAD)


def test_the_old_form_of_a_workload_identity_needs_the_pool_too(empty: FakeCloud) -> None:
    with pytest.raises(Refusal, match=r"Identity Pool does not exist \(my-project.svc.id.goog\)"):
        empty.make(
            "google_project_iam_member.m",
            project="my-project",
            role="roles/viewer",
            member="serviceAccount:my-project.svc.id.goog[ns/account]",
        )


def test_a_principal_of_another_projects_number_is_refused(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match=r"project 42 has no identity pool my-project.svc.id.goog"):
        deployed.make("google_project_iam_member.two", like=MEMBER, member=POOL.format("42", "my-project.svc.id.goog"))


def test_a_role_id_and_permissions_must_be_valid(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match="The role_id 'my-role' is invalid"):
        deployed.make("google_project_iam_custom_role.two", like=WRITER, role_id="my-role")
    with pytest.raises(Refusal, match=r"Permission aiplatform.write is not valid"):
        deployed.change(WRITER, permissions=["aiplatform.write"])


def test_who_may_act_as_an_account_needs_the_account(deployed: FakeCloud) -> None:
    name = "projects/my-project/serviceAccounts/nobody@my-project.iam.gserviceaccount.com"
    with pytest.raises(Refusal, match=f"404: Unknown service account: {name}"):
        deployed.make(
            "google_service_account_iam_member.m",
            service_account_id=name,
            role="roles/iam.serviceAccountUser",
            member="user:a@example.com",
        )


def test_adding_a_member_again_is_no_error(deployed: FakeCloud) -> None:
    deployed.make("google_project_iam_member.two", like=MEMBER)


def test_a_service_must_have_a_name_of_google(empty: FakeCloud) -> None:
    with pytest.raises(Refusal, match=r"Not found or permission denied for service\(s\): compute"):
        empty.make("google_project_service.s", service="compute")


def test_destroying_a_service_disables_it_unless_disable_on_destroy_is_false(empty: FakeCloud) -> None:
    for disable, count in ((False, 1), (None, 0)):
        empty.make("google_project_service.s", service="pubsub.googleapis.com", disable_on_destroy=disable)
        empty.destroy("google_project_service.s")
        assert len(empty.cloud.find("google_project_service", prefix="projects/my-project/services/pubsub")) == count
