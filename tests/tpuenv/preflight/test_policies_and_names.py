"""The rows about organisation policies and names."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.google.cloud_storage_api import BUCKET
from rehearsal.google.network import CLUSTER, NETWORK
from tests.google_project import FakeProject
from tests.google_replies import error, no_access, switched_off
from tpuenv.preflight import names, policies

LOCATIONS = "gcp.resourceLocations"
POOL = "some-project.svc.id.goog"


def values(*, allowed: list[str] | None = None, denied: list[str] | None = None) -> dict[str, Any]:
    return {"values": {"allowedValues": allowed or [], "deniedValues": denied or []}}


@pytest.mark.parametrize(
    ("constraint", "rule", "verdict", "have"),
    [
        ("compute.requireShieldedVm", {"enforce": True}, "missing", "no secure boot"),
        ("compute.requireShieldedVm", {"enforce": False}, "ok", "not enforced"),
        ("iam.disableServiceAccountCreation", {"enforce": True}, "missing", "service accounts of nodes"),
        (LOCATIONS, {"allowAll": True}, "ok", "allows it"),
        (LOCATIONS, {"denyAll": True}, "missing", "denies all"),
        (LOCATIONS, values(allowed=["in:us-locations"]), "ok", "allows it"),
        (LOCATIONS, values(allowed=["us-east5", "in:us-central1-locations"]), "ok", "allows it"),
        (LOCATIONS, values(allowed=["us-east5"]), "missing", "refuses us-central1"),
        (LOCATIONS, values(denied=["in:us-locations"]), "missing", "refuses us-east5, us-central1"),
        (LOCATIONS, values(allowed=["in:northamerica-locations"]), "unknown", "in:northamerica-locations"),
        (LOCATIONS, values(denied=["in:low-carbon-locations"]), "unknown", "in:low-carbon-locations"),
        ("gcp.restrictServiceUsage", values(denied=["compute.googleapis.com"]), "missing", "refuses compute."),
        ("gcp.restrictServiceUsage", values(allowed=["compute.googleapis.com"]), "missing", "more"),
        ("gcp.restrictNonCmekServices", values(denied=["storage.googleapis.com"]), "missing", "refuses storage."),
        (
            "compute.restrictNonConfidentialComputing",
            values(denied=["container.googleapis.com"]),
            "missing",
            "refuses container.",
        ),
        ("compute.restrictCloudNATUsage", values(allowed=["under:projects/some-project"]), "ok", "allows it"),
        ("compute.restrictCloudNATUsage", values(allowed=["under:folders/1"]), "unknown", "under:folders/1"),
        ("compute.restrictCloudNATUsage", values(allowed=["projects/x/regions/r/subnetworks/s"]), "missing", "refuses"),
    ],
)
def test_a_policy_that_would_refuse_a_part_is_missing_and_a_doubtful_one_unknown(
    google: FakeProject, constraint: str, rule: dict[str, Any], verdict: str, have: str
) -> None:
    google.reply(f"policies/{constraint}:", {"name": f"projects/1/policies/{constraint}", "spec": {"rules": [rule]}})
    row = google.rows(policies.CHECK)[constraint]
    assert (row.verdict.value, have in row.have) == (verdict, True), row
    describe = f"gcloud org-policies describe {constraint} --effective --project=some-project"
    assert row.fix.startswith(describe) == (verdict != "ok")


def test_a_policy_of_members_is_unknown_where_there_are_members_and_it_allows_few(google: FakeProject) -> None:
    constraint = "iam.allowedPolicyMemberDomains"
    assert constraint not in google.rows(policies.CHECK)
    assert google.rows(policies.CHECK, MEMBERS="ada@example.com")[constraint].verdict.value == "ok"
    google.reply(f"policies/{constraint}:", {"spec": {"rules": [values(allowed=["C03abcdef"])]}})
    row = google.rows(policies.CHECK, MEMBERS="ada@example.com")[constraint]
    assert (row.verdict.value, row.have) == ("unknown", "allows only C03abcdef")


@pytest.mark.parametrize(
    ("status", "body", "verdict", "have"),
    [
        (200, {"name": "projects/1/policies/x"}, "ok", "allows it"),
        (404, error(404, "NOT_FOUND", "no"), "ok", "no such constraint"),
        (403, error(403, "PERMISSION_DENIED", "no"), "unknown", "takes orgpolicy.policies.get"),
        (403, switched_off("orgpolicy.googleapis.com"), "unknown", "orgpolicy.googleapis.com is off"),
    ],
)
def test_a_policy_that_cannot_be_read_is_unknown(
    google: FakeProject, status: int, body: dict[str, Any], verdict: str, have: str
) -> None:
    google.reply(f"policies/{LOCATIONS}:", body, status=status)
    row = google.rows(policies.CHECK)[LOCATIONS]
    assert (row.verdict.value, row.have) == (verdict, have)


def test_an_answer_of_another_form_ends_the_rows_of_its_check_alone(google: FakeProject) -> None:
    google.reply("policies/gcp.restrictServiceUsage:", {"spec": {"rules": "none"}})
    rows = google.report()
    assert rows[LOCATIONS].verdict.value == "ok"
    assert "another form than documented" in rows["the rest of these checks"].have
    assert rows["cluster tpu-cluster"].verdict.value == "ok"


def test_a_bucket_of_another_project_is_missing(google: FakeProject) -> None:
    bucket = "some-project-tpu-tpu-training"
    google.reply(f"/storage/v1/b/{bucket}", no_access("storage.buckets.get", "bucket"), status=403)
    row = google.rows(names.CHECK)[f"bucket {bucket}"]
    assert (row.verdict.value, row.have, row.fix) == ("missing", "another project's", "choose another RESOURCE_PREFIX")
    row = google.rows(names.CHECK, TF_STATE_BUCKET="the-state-of-things")["bucket the-state-of-things"]
    assert (row.verdict.value, row.have) == ("ok", "free")
    google.cloud.put(BUCKET, "the-state-of-things", {"name": "the-state-of-things", "project": "another-project"})
    row = google.rows(names.CHECK, TF_STATE_BUCKET="the-state-of-things")["bucket the-state-of-things"]
    assert (row.verdict.value, row.fix) == ("missing", "choose another TF_STATE_BUCKET")


def test_an_own_bucket_that_the_caller_may_not_read_is_its_own(google: FakeProject) -> None:
    bucket = "some-project-tpu-tf-state"
    google.reply(rf"/storage/v1/b/{bucket}\Z", no_access("storage.buckets.get", "bucket"), status=403)
    assert google.rows(names.CHECK)[f"bucket {bucket}"].have == "in this project"
    google.reply(r"/storage/v1/b\Z", no_access("storage.buckets.list", "project"), status=403)
    row = google.rows(names.CHECK)[f"bucket {bucket}"]
    assert (row.verdict.value, row.have) == ("unknown", "takes storage.buckets.list")


OTHER = {"name": "lab", "location": "us-west1", "workload_identity_config": [{"workload_pool": POOL}]}


@pytest.mark.parametrize(
    ("cluster", "verdict", "have"),
    [
        (OTHER, "unknown", "lab in us-west1; who creates namespaces there is not known here"),
        ({**OTHER, "name": "tpu-cluster"}, "unknown", "tpu-cluster in us-west1; who creates"),
        ({**OTHER, "name": "tpu-cluster", "location": "us-east5"}, "ok", "none"),
        ({**OTHER, "workload_identity_config": []}, "ok", "none"),
    ],
)
def test_another_cluster_of_the_project_can_have_the_identities_of_every_team(
    google: FakeProject, cluster: dict[str, Any], verdict: str, have: str
) -> None:
    google.cloud.put(CLUSTER, "projects/some-project/locations/{location}/clusters/{name}".format(**cluster), cluster)
    row = google.rows(names.CHECK)["other clusters"]
    assert row.verdict.value == verdict
    assert row.have.startswith(have)
    assert ("a project of its own" in row.fix) == (verdict == "unknown")


def test_whether_there_are_other_clusters_is_unknown_to_who_may_not_list_them(google: FakeProject) -> None:
    google.reply("locations/-/clusters", no_access("container.clusters.list", "project"), status=403)
    row = google.rows(names.CHECK)["other clusters"]
    assert (row.verdict.value, row.have) == ("unknown", "takes container.clusters.list")


@pytest.mark.parametrize(
    ("kind", "name", "what", "stack"),
    [
        (CLUSTER, "projects/some-project/locations/us-east5/clusters/tpu-cluster", "cluster tpu-cluster", "cluster"),
        (NETWORK, "projects/some-project/global/networks/tpu-network", "network tpu-network", "foundation"),
    ],
)
def test_a_cluster_or_network_of_the_name_is_this_environments_only_with_its_state(
    google: FakeProject, kind: str, name: str, what: str, stack: str
) -> None:
    assert google.rows(names.CHECK)[what].have == "free"
    google.cloud.put(kind, name, {"name": name.rpartition("/")[2], "location": "us-east5"})
    row = google.rows(names.CHECK)[what]
    assert (row.verdict.value, row.have) == ("missing", "there, and not in this environment's state")
    assert "tpuenv recover" in row.fix
    google.cloud.put_blob("some-project-tpu-tf-state", f"tpu/{stack}/default.tfstate", b"{}", {}, keep_old=True)
    assert google.rows(names.CHECK)[what].have == "deployed by this environment"
