"""What the pipeline promises: whose code runs as whom, after whose approval, and that the roles are what it takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import environment
from rehearsal.cloudbuild.config import read
from rehearsal.google.conditions import MOST_OPERATORS, operators
from stacks.app import app
from stacks.permissions import MissingFacts, Needed, needed
from stacks.plan_access import KINDS, RELEASES
from tests.synthesis import CASES, ROOT, STACKS, Synthesis, read_stack, stacks_of

CASE = "pipeline"
READING = {"get", "list", "getIamPolicy", "connect"}

Stack = dict[str, Any]


@pytest.fixture(scope="module")
def pipeline(synthesis: Synthesis) -> Stack:
    return dict(synthesis.stack(CASE, "pipeline")["resource"])


@pytest.fixture(scope="module")
def permissions(synthesis: Synthesis) -> Needed:
    return needed(synthesis.stack(CASE, stack) for stack in STACKS)


def triggers(pipeline: Stack) -> dict[str, Stack]:
    return {id_.removeprefix("trigger-"): trigger for id_, trigger in pipeline["google_cloudbuild_trigger"].items()}


def custom_role(pipeline: Stack, role_id: str) -> set[str]:
    (permissions,) = (
        role["permissions"]
        for role in pipeline["google_project_iam_custom_role"].values()
        if role["role_id"] == role_id
    )
    return set(permissions)


def test_without_a_repository_there_is_no_pipeline(synthesis: Synthesis) -> None:
    assert "pipeline" not in stacks_of("default")
    assert not (synthesis.folder("default") / "stacks" / "pipeline").exists()
    platform = synthesis.stack("default", "platform")["resource"]
    assert "tpuenv-plan" not in json.dumps(platform)


def test_a_pull_request_starts_its_tests_by_itself_and_its_plan_after_a_comment(pipeline: Stack) -> None:
    asked = {
        name: trigger["repository_event_config"]["pull_request"]["comment_control"]
        for name, trigger in triggers(pipeline).items()
        if "pull_request" in trigger.get("repository_event_config", {})
    }
    assert asked == {"plan": "COMMENTS_ENABLED", "test": "COMMENTS_ENABLED_FOR_EXTERNAL_CONTRIBUTORS_ONLY"}
    for name in asked:
        assert f"_{name}-account_" in triggers(pipeline)[name]["service_account"]


def roles_of(pipeline: Stack, account: str) -> set[tuple[str, str]]:
    return {
        (type_.removeprefix("google_").removesuffix("_iam_member"), resource["role"])
        for type_, by_id in pipeline.items()
        if type_.endswith("_iam_member")
        for resource in by_id.values()
        if f"_{account}-account_" in resource["member"]
    }


def test_the_test_account_writes_its_log_and_pulls_its_image_and_nothing_else(pipeline: Stack) -> None:
    assert roles_of(pipeline, "test") == {
        ("project", "roles/logging.logWriter"),
        ("artifact_registry_repository", "roles/artifactregistry.reader"),
    }


def test_the_builds_pull_their_image_from_a_registry_that_has_no_other(pipeline: Stack) -> None:
    readers = pipeline["google_artifact_registry_repository_iam_member"].values()
    assert {reader["repository"] for reader in readers} == {"tpu-builder"} and len(readers) == 3


def test_what_runs_as_the_deploy_account_is_on_the_branch_and_approved(pipeline: Stack) -> None:
    of_deploy = {
        name: trigger for name, trigger in triggers(pipeline).items() if "deploy-account" in trigger["service_account"]
    }
    assert of_deploy.keys() == {"deploy", "destroy"}
    assert all(trigger["approval_config"] == {"approval_required": True} for trigger in of_deploy.values())
    assert of_deploy["deploy"]["repository_event_config"]["push"] == {"branch": "^main$"}
    assert of_deploy["destroy"]["source_to_build"]["ref"] == "refs/heads/main"
    assert of_deploy["destroy"]["git_file_source"]["revision"] == "refs/heads/main"


def test_what_google_says_of_a_repository_s_type_changes_no_trigger(pipeline: Stack) -> None:
    by_hand = {name: trigger for name, trigger in triggers(pipeline).items() if "source_to_build" in trigger}
    assert by_hand.keys() == {"destroy", "drift"}
    for trigger in by_hand.values():
        assert trigger["lifecycle"]["ignore_changes"] == [
            "git_file_source[0].repo_type",
            "source_to_build[0].repo_type",
        ]


@pytest.mark.parametrize("stack", [*STACKS, "pipeline"])
def test_requests_of_terraform_name_no_project_that_pays(stack: str, synthesis: Synthesis) -> None:
    """It takes serviceusage.services.use, which the builds' accounts lack."""
    (google,) = synthesis.stack(CASE, stack)["provider"]["google"]
    assert not {"user_project_override", "billing_project"} & google.keys()
    for path in (ROOT / "cloudbuild").glob("*.yaml"):
        assert not re.search("USER_PROJECT_OVERRIDE|GOOGLE_BILLING_PROJECT|QUOTA_PROJECT", path.read_text())


def test_the_nightly_job_is_in_a_region_with_cloud_scheduler_and_calls_the_trigger_where_that_is(
    tmp_path: Path,
) -> None:
    repository = "projects/my-project/locations/us-east5/connections/github/repositories/mine"
    env = {"PROJECT_ID": "my-project", "BUILD_REPOSITORY": repository, "BUILDER_IMAGE": f"a/b@sha256:{'0' * 64}"}
    (tmp_path / "vars.env").write_text("")
    synthesized = app(environment.load(tmp_path / "vars.env", env), tmp_path / "out")
    stack = next(child for child in synthesized.node.children if child.node.id == "pipeline").to_terraform()["resource"]  # type: ignore[attr-defined]
    (job,) = stack["google_cloud_scheduler_job"].values()
    assert job["region"] == "us-east4"
    assert {trigger["location"] for trigger in stack["google_cloudbuild_trigger"].values()} == {"us-east5"}
    assert "google_cloudbuild_trigger.trigger-drift.id" in job["http_target"]["uri"]


def test_every_trigger_is_of_the_connected_repository_and_in_its_region(pipeline: Stack, synthesis: Synthesis) -> None:
    repository = synthesis.environment(CASE).settings.build_repository
    for trigger in triggers(pipeline).values():
        assert trigger["location"] == "us-central1"
        for block in ("repository_event_config", "source_to_build", "git_file_source"):
            assert trigger.get(block, {}).get("repository", repository) == repository


def test_every_trigger_gives_its_file_the_substitutions_that_have_no_default(pipeline: Stack) -> None:
    for name, trigger in triggers(pipeline).items():
        declared = read(ROOT / "cloudbuild" / f"{name}.yaml").substitutions
        assert trigger.get("filename", trigger.get("git_file_source", {}).get("path")) == f"cloudbuild/{name}.yaml"
        assert trigger["substitutions"].keys() <= declared.keys()
        assert all(declared[key] for key in declared.keys() - trigger["substitutions"].keys()), name


def test_a_branch_is_matched_whole_and_to_the_letter(tmp_path: Path) -> None:
    configured = environment.load(Path(f"tests/cases/{CASE}.env"), process_env={"BUILD_BRANCH": "release/2027.1"})
    app(configured, tmp_path).synth()
    stack = read_stack(tmp_path, "pipeline")["resource"]
    assert triggers(stack)["deploy"]["repository_event_config"]["push"]["branch"] == r"^release/2027\.1$"


def test_the_plan_account_reads_and_adds_records_and_no_more(pipeline: Stack) -> None:
    assert {permission.rpartition(".")[2] for permission in custom_role(pipeline, "tpu_plan")} <= READING
    roles = roles_of(pipeline, "plan")
    (own,) = {role for _, role in roles if role.startswith("${")}
    assert "role-plan" in own
    assert roles == {
        ("project", own),
        ("project", "roles/logging.logWriter"),
        ("storage_bucket", "roles/storage.objectViewer"),
        ("storage_bucket", "roles/storage.objectCreator"),
        ("artifact_registry_repository", "roles/artifactregistry.reader"),
    }
    (added,) = (
        member["bucket"]
        for member in pipeline["google_storage_bucket_iam_member"].values()
        if member["role"] == "roles/storage.objectCreator"
    )
    assert added == "${google_storage_bucket.records.name}"


def test_nobody_in_the_pipeline_approves_builds_or_writes_roles(pipeline: Stack) -> None:
    granted = {
        permission for role in pipeline["google_project_iam_custom_role"].values() for permission in role["permissions"]
    }
    never = {"cloudbuild.builds.approve", "iam.roles.create", "iam.roles.update", "iam.roles.undelete",
             "iam.serviceAccounts.setIamPolicy", "iam.serviceAccounts.getAccessToken",
             "iam.serviceAccountKeys.create", "storage.objects.get"}  # fmt: skip
    assert not granted & never
    assert not any(permission.endswith("*") for permission in granted)


def test_the_deploy_account_has_exactly_what_the_types_in_use_take(pipeline: Stack, permissions: Needed) -> None:
    assert custom_role(pipeline, "tpu_deploy") == {*permissions.read, *permissions.write}
    assert custom_role(pipeline, "tpu_plan") == set(permissions.read)
    assert custom_role(pipeline, "tpu_deploy_buckets") == {*permissions.own, "storage.buckets.setIamPolicy"}
    assert "compute.firewalls.create" not in custom_role(pipeline, "tpu_deploy"), "there is no firewall rule"


def test_a_type_that_comes_into_use_comes_into_the_roles(tmp_path: Path) -> None:
    changed = {"CONTROL_PLANE_CIDR": "172.16.0.0/28"}
    app(environment.load(Path(f"tests/cases/{CASE}.env"), process_env=changed), tmp_path).synth()
    stack = read_stack(tmp_path, "pipeline")["resource"]
    assert "compute.firewalls.create" in custom_role(stack, "tpu_deploy")
    assert "compute.firewalls.get" in custom_role(stack, "tpu_plan")


def test_a_type_that_nobody_has_described_ends_the_synthesis() -> None:
    words = r"(?s)types/data\.google_x\.json .*types/google_pubsub_topic\.json does not exist"
    with pytest.raises(MissingFacts, match=words):
        needed([{"resource": {"google_pubsub_topic": {"t": {}}}, "data": {"google_x": {"y": {}}}}])


def test_a_granted_role_has_a_name_before_it_is_applied() -> None:
    member = {"role": "${google_project_iam_custom_role.mine.name}"}
    with pytest.raises(ValueError, match=r"custom_role\.mine\.name} is granted in a stack; write the role's name"):
        needed([{"resource": {"google_project_iam_member": {"m": member}}}])


def test_the_roles_that_may_be_granted_are_those_that_the_stacks_grant(pipeline: Stack, synthesis: Synthesis) -> None:
    granted: dict[str, set[str]] = {}
    for stack in STACKS:
        for type_, by_id in synthesis.stack(CASE, stack)["resource"].items():
            if type_.endswith("_iam_member"):
                granted.setdefault(type_, set()).update(resource["role"] for resource in by_id.values())
    setters = {"google_project_iam_member": "grant_resourcemanager", "google_storage_bucket_iam_member": "buckets",
               "google_artifact_registry_repository_iam_member": "grant_artifactregistry"}  # fmt: skip
    assert granted.keys() == setters.keys()
    for type_, name in setters.items():
        (condition,) = (
            member["condition"]["expression"]
            for id_, member in pipeline["google_project_iam_member"].items()
            if name in id_
        )
        listed = ", ".join(f"'{role}'" for role in sorted(granted[type_]))
        assert condition.endswith(f"modifiedGrantsByRole', []).hasOnly([{listed}])")


def test_every_setting_of_a_policy_is_under_a_condition(pipeline: Stack) -> None:
    roles = pipeline["google_project_iam_custom_role"]
    for member in pipeline["google_project_iam_member"].values():
        custom = roles.get(member["role"].split(".")[1]) if member["role"].startswith("${") else None
        if custom and any(permission.endswith(".setIamPolicy") for permission in custom["permissions"]):
            expression = member["condition"]["expression"]
            assert "modifiedGrantsByRole" in expression
            assert operators(expression) <= MOST_OPERATORS


def test_logs_of_data_access_take_no_more_permissions_and_no_wider_condition(tmp_path: Path, pipeline: Stack) -> None:
    changed = {"DATA_ACCESS_LOGS": "true"}
    app(environment.load(Path(f"tests/cases/{CASE}.env"), process_env=changed), tmp_path).synth()
    assert "google_project_iam_audit_config" in read_stack(tmp_path, "foundation")["resource"]
    assert read_stack(tmp_path, "pipeline")["resource"] == pipeline


def test_a_new_team_leaves_the_pipeline_alone(tmp_path: Path, synthesis: Synthesis) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("tpu_pools: {tpu: {type: v6e-16, slices: 2}}\nteams: {research: {}, serving: {}}\n")
    app(environment.load(Path(f"tests/cases/{CASE}.env"), process_env={}, fleet=fleet), tmp_path / "out").synth()
    assert read_stack(tmp_path / "out", "pipeline") == synthesis.stack(CASE, "pipeline")


def test_records_are_private_and_go_after_a_while(pipeline: Stack) -> None:
    for bucket in pipeline["google_storage_bucket"].values():
        assert bucket["uniform_bucket_level_access"] is True
        assert bucket["public_access_prevention"] == "enforced"
        assert bucket["lifecycle_rule"] == [{"action": {"type": "Delete"}, "condition": {"age": 90}}]
        assert bucket["lifecycle"] == {"prevent_destroy": True}


def test_the_drift_check_is_started_every_night_by_an_account_of_its_own(pipeline: Stack) -> None:
    (job,) = pipeline["google_cloud_scheduler_job"].values()
    assert job["http_target"]["uri"].endswith("/v1/${google_cloudbuild_trigger.trigger-drift.id}:run")
    assert "scheduler-account" in job["http_target"]["oauth_token"]["service_account_email"]
    acts = {
        member["service_account_id"]
        for member in pipeline["google_service_account_iam_member"].values()
        if "scheduler-account" in member["member"]
    }
    assert len(acts) == 1 and "plan-account" in acts.pop()


def test_in_the_cluster_the_plan_account_reads_what_the_stacks_have_there_and_no_more(synthesis: Synthesis) -> None:
    used: set[tuple[str, str]] = set()
    for case in CASES:
        for stack in ("platform", "queues"):
            for type_, by_id in synthesis.stack(case, stack)["resource"].items():
                for resource in by_id.values():
                    used |= {_kind(type_, resource)} - {None}
    assert {(group, kind) for group, kinds in KINDS.items() for kind in kinds} == used
    releases = {
        release["namespace"]
        for case in CASES
        for stack in ("platform", "queues")
        for release in synthesis.resources(case, stack, "helm_release").values()
    }
    assert set(RELEASES) == releases


def _kind(type_: str, resource: Stack) -> Any:
    if type_ == "kubernetes_manifest":
        manifest = resource["manifest"]
        kind = manifest["kind"].lower()
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}es" if kind.endswith("ss") else f"{kind}s"
        return manifest["apiVersion"].rpartition("/")[0], plural
    if type_.startswith("kubernetes_"):
        kind = type_.removeprefix("kubernetes_").removesuffix("_v1").replace("_", "") + "s"
        return ("rbac.authorization.k8s.io" if "role" in kind else ""), kind
    return None


def test_in_the_cluster_the_plan_account_writes_nothing_and_sees_no_secret(synthesis: Synthesis) -> None:
    platform = synthesis.stack(CASE, "platform")["resource"]
    roles = {**platform["kubernetes_cluster_role_v1"], **platform["kubernetes_role_v1"]}
    mine = {id_: role for id_, role in roles.items() if role["metadata"]["name"] == "tpuenv-plan"}
    assert len(mine) == 3
    for role in mine.values():
        for rule in role["rule"]:
            assert set(rule["verbs"]) <= {"get", "list"}
            assert not {"*", "secrets"} & {*rule["resources"], *rule["api_groups"]}


@pytest.mark.parametrize("stack", ["platform", "queues"])
def test_helm_keeps_its_releases_where_the_plan_account_may_read_them(stack: str, synthesis: Synthesis) -> None:
    (helm,) = synthesis.stack(CASE, stack)["provider"]["helm"]
    assert helm["helm_driver"] == "configmap"
