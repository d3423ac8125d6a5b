"""The identities of the pipeline in a fake cloud: what each may do there, and what is refused it."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.google.permissions import ROLE, account_of, denied, token_of
from rehearsal.kubernetes.api import Api
from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.deployed import addresses, deploy, destroy, stacks_in
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import STACKS, Synthesis, read_stack

TEST = "tpu-test@my-project.iam.gserviceaccount.com"
PLAN = "tpu-plan@my-project.iam.gserviceaccount.com"
DEPLOY = "tpu-deploy@my-project.iam.gserviceaccount.com"
BUILD = "tpu-build@my-project.iam.gserviceaccount.com"
NODES = "tpu-nodes@my-project.iam.gserviceaccount.com"
DEPLOY_ROLE = "projects/my-project/roles/tpu_deploy"
STATE = "my-project-tpu-tf-state"
CLUSTER = "projects/my-project/locations/us-east5/clusters/tpu-cluster"


@pytest.fixture(scope="module")
def piped_once(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCloud]:
    fake = deploy(synthesis.folder("pipeline"), tmp_path_factory.mktemp("piped") / "world")
    yield fake
    fake.close()


@pytest.fixture
def piped(piped_once: FakeCloud, tmp_path: Path) -> Iterator[FakeCloud]:
    """An environment with a pipeline, as its administrator deployed it: each test has its own copy."""
    fake = piped_once.copy(tmp_path / "piped")
    yield fake
    fake.close()


def by_person(synthesis: Synthesis, folder: Path) -> FakeCloud:
    """A person's part: foundation and pipeline are there, and the rest is for the builds."""
    return deploy(synthesis.folder("pipeline"), folder, stacks=("foundation", "pipeline"))


def test_the_deploy_identity_makes_all_that_the_builds_deploy(synthesis: Synthesis, tmp_path: Path) -> None:
    fake = by_person(synthesis, tmp_path / "world")
    output = synthesis.folder("pipeline")
    fake.act_as(DEPLOY)
    for stack in stacks_in(output):
        if stack != "pipeline":
            fake.deploy(read_stack(output, stack))
    assert len(fake.cloud.find("google_container_node_pool")) == 4
    fake.close()


def test_the_deploy_identity_takes_all_of_it_down(piped: FakeCloud, synthesis: Synthesis) -> None:
    mine = {
        f"{type_}.{id_}"
        for stack in stacks_in(synthesis.folder("pipeline"))
        if stack != "pipeline"
        for type_, by_id in read_stack(synthesis.folder("pipeline"), stack)["resource"].items()
        for id_ in by_id
    }
    piped.act_as(DEPLOY)
    for address in reversed([address for address in piped.resources if address in mine]):
        piped.destroy(address)
    assert len(piped.cloud.find("google_container_cluster")) == len(piped.cloud.find("google_compute_network")) == 0
    assert len(piped.cloud.find("google_cloudbuild_trigger")) == 5


def test_after_a_new_foundation_a_person_deploys_the_pipeline_again(piped: FakeCloud, synthesis: Synthesis) -> None:
    output = synthesis.folder("pipeline")
    keep = ("google_project_service.", "google_project_iam_custom_role.")
    gone = [address for stack in stacks_in(output) if stack != "pipeline" for address in addresses(output, stack)]
    destroy(piped, [address for address in gone if not address.startswith(keep)])
    piped.act_as(DEPLOY)
    piped.deploy(read_stack(output, "foundation"))
    with pytest.raises(Refusal, match=r"does not have access to service account 'tpu-nodes@.*actAs' denied"):
        piped.deploy(read_stack(output, "cluster"))
    piped.act_as("")
    piped.deploy(read_stack(output, "pipeline"))
    piped.act_as(DEPLOY)
    piped.deploy(read_stack(output, "cluster"))


def test_the_plan_identity_reads_every_resource_of_the_builds(piped: FakeCloud, synthesis: Synthesis) -> None:
    piped.act_as(PLAN)
    for address, resource in piped.resources.items():
        if resource.type_ != "terraform_data" and not _of_pipeline(synthesis, address):
            assert piped.read(address) is not None, address
            piped.plan(address)


@pytest.mark.parametrize("kept", [0, 1])
def test_the_plan_identity_reads_the_cluster_whether_or_not_its_token_carries_an_email(
    piped: FakeCloud, kept: int
) -> None:
    """Both of its names are bound: with one of them alone, the other is refused."""
    api = Api(piped.cloud, CLUSTER)
    (binding,) = api.of_kind("ClusterRoleBinding")
    email, number = (subject["name"] for subject in binding["subjects"])
    account = piped.cloud.get("google_service_account", f"projects/my-project/serviceAccounts/{PLAN}")
    assert account is not None
    assert (email, number) == (PLAN, account["unique_id"])
    binding["subjects"] = [binding["subjects"][kept]]
    api.store(binding)
    piped.act_as(PLAN)
    with pytest.raises(Refusal, match=f'is forbidden: User "{(number, email)[kept]}" cannot get resource "namespaces"'):
        piped.read("kubernetes_namespace_v1.team-tpu-training_namespace_139BA39A")


@pytest.mark.parametrize(
    ("missing", "stack"),
    [
        ("compute.networks.create", "foundation"),
        ("compute.regionOperations.get", "foundation"),
        ("iam.serviceAccounts.create", "foundation"),
        ("storage.buckets.create", "foundation"),
        ("container.operations.get", "cluster"),
    ],
)
def test_a_permission_that_is_missing_stops_the_deploy_with_403(
    missing: str, stack: str, piped: FakeCloud, synthesis: Synthesis
) -> None:
    output = synthesis.folder("pipeline")
    lost = STACKS
    gone = {address for name in lost for address in addresses(output, name)}
    keep = ("google_project_service.", "google_project_iam_custom_role.")
    destroy(piped, [address for address in gone if not address.startswith(keep)])
    if stack != "foundation":
        piped.deploy(read_stack(output, "foundation"))
    piped.cloud.change(ROLE, DEPLOY_ROLE, lambda values: values["permissions"].remove(missing))
    piped.act_as(DEPLOY)
    # Google's grant of all of GKE would make up for it.
    (admin,) = piped.cloud.find("google_project_iam_member", prefix="my-project/roles/container.admin/")
    piped.cloud.delete(admin.kind, admin.name)
    with pytest.raises(Refusal, match=f"Error 403: .*'{missing}' denied on resource"):
        piped.deploy(read_stack(output, stack))


@pytest.mark.parametrize(
    ("address", "changes"),
    [
        ("google_compute_network.network", {"description": "mine"}),
        ("google_storage_bucket.bucket-tpu-training", {"force_destroy": True, "labels": {"a": "b"}}),
        ("google_container_node_pool.tpu-0", {"node_config__labels": {"a": "b"}}),
        ("kubernetes_namespace_v1.team-tpu-training_namespace_139BA39A", {"metadata__labels": {"a": "b"}}),
        ("helm_release.kueue", {"timeout": 1}),
    ],
)
def test_the_plan_identity_changes_and_deletes_nothing(piped: FakeCloud, address: str, changes: dict[str, Any]) -> None:
    piped.act_as(PLAN)
    with pytest.raises(Refusal, match=r"denied on resource|is forbidden: User"):
        piped.change(address, **changes)
    with pytest.raises(Refusal, match=r"denied on resource|is forbidden: User"):
        piped.destroy(address)


def _of_pipeline(synthesis: Synthesis, address: str) -> bool:
    type_, _, id_ = address.partition(".")
    return id_ in read_stack(synthesis.folder("pipeline"), "pipeline")["resource"].get(type_, {})


@pytest.mark.parametrize("role", ["roles/owner", "roles/editor", "roles/container.admin", DEPLOY_ROLE])
def test_the_deploy_identity_grants_no_role_that_the_stacks_do_not(piped: FakeCloud, role: str) -> None:
    piped.act_as(DEPLOY)
    for member in (f"serviceAccount:{DEPLOY}", f"serviceAccount:{PLAN}"):
        with pytest.raises(Refusal, match=r"'resourcemanager.projects.setIamPolicy' denied"):
            piped.make("google_project_iam_member.more", project="my-project", role=role, member=member)
    granted = "roles/container.defaultNodeServiceAccount"
    assert piped.make("google_project_iam_member.same", project="my-project", role=granted, member=member)


def test_the_deploy_identity_may_log_access_to_data_which_changes_no_grant(piped: FakeCloud) -> None:
    values = {"service": "storage.googleapis.com", "audit_log_config": [{"log_type": "DATA_READ"}]}
    piped.act_as(PLAN)
    with pytest.raises(Refusal, match=r"'resourcemanager.projects.setIamPolicy' denied"):
        piped.make("google_project_iam_audit_config.logs", project="my-project", **values)
    piped.act_as(DEPLOY)
    assert piped.make("google_project_iam_audit_config.logs", project="my-project", **values)


def test_the_deploy_identity_widens_no_role_and_takes_no_other_account(piped: FakeCloud) -> None:
    piped.act_as(DEPLOY)
    role = next(address for address in piped.resources if address.startswith(f"{ROLE}.identities_role-deploy_5"))
    with pytest.raises(Refusal, match=r"'iam.roles.update' denied"):
        piped.change(role, permissions=["resourcemanager.projects.setIamPolicy"])
    with pytest.raises(Refusal, match=r"'iam.roles.create' denied"):
        piped.make(f"{ROLE}.mine", role_id="mine", title="mine", permissions=["storage.objects.get"])
    account = f"projects/my-project/serviceAccounts/{PLAN}"
    with pytest.raises(Refusal, match=r"'iam.serviceAccounts.setIamPolicy' denied"):
        piped.make(
            "google_service_account_iam_member.mine",
            service_account_id=account,
            role="roles/iam.serviceAccountTokenCreator",
            member=f"serviceAccount:{DEPLOY}",
        )
    with pytest.raises(Refusal, match=r"'iam.serviceAccounts.actAs' denied"):
        piped.make("google_container_node_pool.mine", "google_container_node_pool.tpu-0", name="mine",
                   node_config__service_account=PLAN)  # fmt: skip


@pytest.mark.parametrize("bucket", [STATE, "my-project-tpu-plans", "my-project-other"])
def test_the_deploy_identity_changes_only_buckets_that_the_stacks_make(piped: FakeCloud, bucket: str) -> None:
    if bucket == "my-project-other":
        piped.make("google_storage_bucket.other", "google_storage_bucket.bucket-tpu-training", name=bucket)
    piped.act_as(DEPLOY)
    with pytest.raises(Refusal, match=r"'storage.buckets.setIamPolicy' denied"):
        piped.make(
            "google_storage_bucket_iam_member.mine",
            bucket=bucket,
            role="roles/storage.objectUser",
            member=f"serviceAccount:{DEPLOY}",
        )


@pytest.mark.parametrize("account", [PLAN, DEPLOY])
def test_no_build_takes_the_pipeline_away(account: str, piped: FakeCloud) -> None:
    piped.act_as(account)
    for address in (
        "google_cloud_scheduler_job.drift-nightly",
        "google_storage_bucket.records",
        "google_storage_bucket_iam_member.identities_state-plan_DCA2664D",
        "google_service_account_iam_member.identities_scheduler-acts-as-plan_266FC885",
    ):
        with pytest.raises(Refusal, match=r"denied on resource"):
            piped.destroy(address)


def test_nobody_makes_a_trigger_that_runs_as_somebody_else(piped: FakeCloud) -> None:
    like = piped.resources["google_cloudbuild_trigger.trigger-plan"].config | {"name": "mine"}
    for account, other in ((DEPLOY, PLAN), ("tpu-drift@my-project.iam.gserviceaccount.com", DEPLOY)):
        piped.act_as(account)
        config = like | {"service_account": f"projects/my-project/serviceAccounts/{other}"}
        with pytest.raises(Refusal, match=r"'iam.serviceAccounts.actAs' denied"):
            piped.make("google_cloudbuild_trigger.mine", **config)
    piped.act_as(PLAN)
    with pytest.raises(Refusal, match=r"'cloudbuild.builds.create' denied"):
        piped.make("google_cloudbuild_trigger.mine", **like)


def asked(fake: FakeCloud, method: str, path: str, account: str) -> int:
    """The status of a request to Cloud Storage with the token of an account."""
    headers = {"Authorization": f"Bearer {token_of(account)}"}
    data = b"{}" if method == "POST" else None
    request = urllib.request.Request(fake.place.address + path, data=data, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_state_is_read_by_plans_and_written_by_deploys(piped: FakeCloud) -> None:
    for stack in ("cluster", "pipeline"):
        piped.cloud.put_blob(STATE, f"tpu/{stack}/default.tfstate", b"{}", {}, keep_old=True)
    read, write = f"/storage/v1/b/{STATE}/o/tpu%2F{{}}%2Fdefault.tfstate?alt=media", f"/upload/storage/v1/b/{STATE}/o"
    lock = f"{write}?uploadType=media&name=tpu/{{}}/default.tflock"
    assert [asked(piped, "GET", read.format("cluster"), account) for account in (PLAN, DEPLOY, "")] == [200, 200, 200]
    assert [asked(piped, "POST", lock.format("cluster"), account) for account in (PLAN, DEPLOY)] == [403, 200]
    assert [asked(piped, "GET", read.format("pipeline"), account) for account in (PLAN, DEPLOY, "")] == [403, 403, 200]
    assert [asked(piped, "POST", lock.format("pipeline"), account) for account in (PLAN, DEPLOY, "")] == [403, 403, 200]
    assert [asked(piped, "GET", f"/storage/v1/b/{STATE}/o", account) for account in (PLAN, DEPLOY)] == [200, 200]


def test_a_plan_adds_a_record_and_only_a_deploy_replaces_or_reads_it(piped: FakeCloud) -> None:
    add = "/upload/storage/v1/b/my-project-tpu-plans/o?uploadType=media&name=a/b.json"
    record = "/storage/v1/b/my-project-tpu-plans/o/a%2Fb.json"
    assert asked(piped, "POST", add, TEST) == 403
    assert [asked(piped, "POST", add, PLAN) for _ in range(2)] == [200, 403]
    assert [asked(piped, method, record, PLAN) for method in ("GET", "DELETE")] == [403, 403]
    assert [asked(piped, "POST", add, DEPLOY), asked(piped, "GET", record, DEPLOY)] == [200, 200]


def test_the_data_of_teams_and_the_source_of_images_is_read_by_no_build_of_the_pipeline(piped: FakeCloud) -> None:
    piped.cloud.put_blob("my-project-tpu-tpu-training", "checkpoint", b"weights", {}, keep_old=False)
    piped.cloud.put_blob("my-project-tpu-builds", "source/a.tgz", b"source", {}, keep_old=False)
    for account in (TEST, PLAN, DEPLOY):
        assert asked(piped, "GET", "/storage/v1/b/my-project-tpu-tpu-training/o/checkpoint?alt=media", account) == 403
        assert asked(piped, "GET", "/storage/v1/b/my-project-tpu-builds/o/source%2Fa.tgz", account) == 403
    assert asked(piped, "GET", "/storage/v1/b/my-project-tpu-tpu-training/o", PLAN) == 403


def test_a_build_of_an_image_reads_its_source_writes_its_log_pushes_and_no_more(piped: FakeCloud) -> None:
    bucket = "my-project-tpu-builds"
    piped.cloud.put_blob(bucket, "source/a.tgz", b"source", {}, keep_old=False)
    assert asked(piped, "GET", f"/storage/v1/b/{bucket}", BUILD) == 200
    assert asked(piped, "GET", f"/storage/v1/b/{bucket}/o/source%2Fa.tgz?alt=media", BUILD) == 200
    write = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name="
    assert [asked(piped, "POST", f"{write}logs/log-1.txt", BUILD) for _ in range(2)] == [200, 200], "it grows"
    assert asked(piped, "POST", f"{write}source/a.tgz", BUILD) == 403
    assert asked(piped, "GET", f"/storage/v1/b/{STATE}/o", BUILD) == 403
    place = "projects/my-project/locations/us-east5/repositories"
    for registry, account, may in (("images", BUILD, True), ("builder", BUILD, True), ("builder", NODES, False)):
        why = denied(
            piped.cloud, account, "artifactregistry.repositories.uploadArtifacts", f"{place}/tpu-{registry}",
            project="my-project",
        )  # fmt: skip
        assert (why == "") is may, (registry, account)


def test_a_token_that_is_none_of_the_rehearsal_is_nobody() -> None:
    assert account_of(token_of("")) == "" and account_of(token_of(PLAN)) == PLAN
    assert account_of("ya29.real") is account_of(None) is account_of("rehearsal:") is None
