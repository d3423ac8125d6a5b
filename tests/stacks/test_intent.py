"""What the stacks promise, in words; the snapshots beside them show everything else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import environment
from tests.synthesis import CASES, EVERY_STACK, HERE, STACKS, Synthesis, read_stack, stacks_of, synthesize, texts
from vocabulary.resource_types import facts_of, fill

AUTHORITATIVE = ("_iam_binding", "_iam_policy")
FORBIDDEN_ROLES = {"roles/owner", "roles/editor", "roles/storage.admin", "roles/iam.serviceAccountTokenCreator"}
SECURITY = "gke-security-groups@example.com"
# Renaming one of these destroys what it holds and makes an empty one.
STATEFUL = {
    "foundation": {
        "google_compute_network.network",
        "google_compute_subnetwork.subnet",
        "google_service_account.node-account",
        "google_storage_bucket.bucket-tpu-training",
        "google_artifact_registry_repository.registry",
        "google_artifact_registry_repository.builder-registry",
        "google_vertex_ai_tensorboard.tensorboard",
    },
    "cluster": {"google_container_cluster.cluster", "google_container_node_pool.cpu-pool"},
    "platform": {
        "helm_release.jobset",
        "helm_release.kueue",
        "kubernetes_namespace_v1.team-tpu-training_namespace_139BA39A",
    },
    "tpu-node-pools": {"google_container_node_pool.tpu-0", "google_container_node_pool.tpu-1"},
    "queues": {
        "kubernetes_manifest.clusterqueue-tpu-training",
        "kubernetes_manifest.localqueue-tpu-training-default",
        "kubernetes_manifest.resourceflavor-cpu",
        "kubernetes_manifest.resourceflavor-tpu",
    },
}


def with_settings(folder: Path, **changes: str) -> dict[str, str]:
    """The text of every stack of the default environment with some settings changed, by stack."""
    return texts(synthesize(environment.load(HERE / "cases" / "default.env", process_env=changes), folder))


def resources(stack: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every resource of a stack with its address."""
    for type_, by_id in stack.get("resource", {}).items():
        for id_, resource in by_id.items():
            yield f"{type_}.{id_}", resource


def all_resources(synthesis: Synthesis, case: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for stack in stacks_of(case):
        yield from resources(synthesis.stack(case, stack))


def test_every_stack_keeps_its_state_under_its_own_prefix(synthesis: Synthesis) -> None:
    backends = [synthesis.stack("default", stack)["terraform"]["backend"]["gcs"] for stack in STACKS]
    assert [backend["prefix"] for backend in backends] == [f"tpu/{stack}" for stack in STACKS]
    assert {backend["bucket"] for backend in backends} == {"my-project-tpu-tf-state"}


@pytest.mark.parametrize("case", ["default", "pipeline"])
def test_the_stacks_are_a_line_and_not_a_tree(case: str, synthesis: Synthesis) -> None:
    manifest = json.loads((synthesis.folder(case) / "manifest.json").read_text(encoding="utf-8"))
    order = {name: stack["dependencies"] for name, stack in manifest["stacks"].items()}
    line = stacks_of(case)
    assert order == {stack: line[index - 1 : index] if index else [] for index, stack in enumerate(line)}


def test_the_addresses_of_everything_stateful_stay(synthesis: Synthesis) -> None:
    for stack, expected in STATEFUL.items():
        assert expected <= {address for address, _ in resources(synthesis.stack("default", stack))}


@pytest.mark.parametrize(("case", "stack"), EVERY_STACK)
def test_a_protected_stack_cannot_be_destroyed(case: str, stack: str, synthesis: Synthesis) -> None:
    assert synthesis.resources(case, stack, "terraform_data")["guard"]["lifecycle"]["prevent_destroy"] is True


DATA = {
    "google_storage_bucket.bucket-tpu-training",
    "google_artifact_registry_repository.registry",
    "google_artifact_registry_repository.builder-registry",
    "google_vertex_ai_tensorboard.tensorboard",
}


def protected(stacks: dict[str, str]) -> set[str]:
    return {
        address
        for text in stacks.values()
        for address, resource in resources(json.loads(text))
        if resource.get("lifecycle", {}).get("prevent_destroy")
    }


def test_what_everything_stands_on_is_protected_and_so_is_the_data(synthesis: Synthesis) -> None:
    assert protected(texts(synthesis.folder("default"))) == DATA | {
        "terraform_data.guard",
        "google_compute_network.network",
        "google_compute_subnetwork.subnet",
        "google_container_cluster.cluster",
    }


def test_lifting_protection_frees_all_but_the_data(tmp_path: Path) -> None:
    assert protected(with_settings(tmp_path, DELETION_PROTECTION="false")) == DATA


def test_destroying_data_takes_two_words(tmp_path: Path) -> None:
    stacks = with_settings(tmp_path, DELETION_PROTECTION="false", DESTROY_DATA="true")
    assert not any('"prevent_destroy": true' in text for text in stacks.values())
    bucket = json.loads(stacks["foundation"])["resource"]["google_storage_bucket"]["bucket-tpu-training"]
    assert bucket["force_destroy"] is True


@pytest.mark.parametrize("case", CASES)
def test_no_registry_moves_a_tag_to_another_image(case: str, synthesis: Synthesis) -> None:
    registries = synthesis.resources(case, "foundation", "google_artifact_registry_repository")
    assert {registry["repository_id"].rpartition("-")[2] for registry in registries.values()} == {"images", "builder"}
    assert all(registry["docker_config"] == {"immutable_tags": True} for registry in registries.values())


def test_nodes_and_members_see_no_image_of_the_pipeline(synthesis: Synthesis) -> None:
    for stack in STACKS:
        members = synthesis.resources("pipeline", stack, "google_artifact_registry_repository_iam_member").values()
        for member in members:
            builder = "builder" in member["repository"]
            assert not builder or "build-account" in member["member"], member


def test_the_providers_own_protection_stays_out_of_the_state(synthesis: Synthesis) -> None:
    assert (
        synthesis.resources("default", "cluster", "google_container_cluster")["cluster"]["deletion_protection"] is False
    )


def test_a_larger_slice_changes_what_depends_on_it_and_nothing_else(tmp_path: Path, synthesis: Synthesis) -> None:
    changed = with_settings(tmp_path, TPU_TYPE="v6e-32")
    differ = {stack for stack in STACKS if changed[stack] != synthesis.text("default", stack)}
    assert differ == {"tpu-node-pools", "queues"}
    pools = json.loads(changed["tpu-node-pools"])["resource"]["google_container_node_pool"]
    assert {pool["node_count"] for pool in pools.values()} == {8}
    assert {pool["placement_policy"]["tpu_topology"] for pool in pools.values()} == {"4x8"}
    queues = json.loads(changed["queues"])["resource"]["kubernetes_manifest"]
    flavor = queues["resourceflavor-tpu"]["manifest"]["spec"]["nodeLabels"]
    assert flavor["cloud.google.com/gke-tpu-topology"] == "4x8"
    covered = queues["clusterqueue-tpu-training"]["manifest"]["spec"]["resourceGroups"][0]["flavors"]
    assert covered[0]["resources"] == [{"name": "google.com/tpu", "nominalQuota": "64"}]


@pytest.mark.parametrize("case", CASES)
def test_nobody_is_granted_more_than_needed(case: str, synthesis: Synthesis) -> None:
    for address, resource in all_resources(synthesis, case):
        assert not address.split(".")[0].endswith(AUTHORITATIVE), f"{address} would remove other people's grants"
        assert resource.get("role") not in FORBIDDEN_ROLES, address


def test_a_teams_identity_reaches_its_own_bucket_only(synthesis: Synthesis) -> None:
    bindings = synthesis.resources("v5p-128", "platform", "google_storage_bucket_iam_member").values()
    member = (
        "principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/"
        "my-project.svc.id.goog/subject/ns/tpu-training/sa/tpu-training"
    )
    assert {(binding["bucket"], binding["role"], binding["member"]) for binding in bindings} == {
        ("my-project-tpu-tpu-training", "roles/storage.objectUser", member),
        ("my-project-tpu-tpu-training", "roles/storage.legacyBucketReader", member),
    }


def test_two_environments_of_a_project_with_the_same_team_share_no_name_and_no_identity(tmp_path: Path) -> None:
    """But the project's services, and the role of a person who is a member in both."""
    first, second = (
        synthesize(
            environment.load(
                HERE / "cases" / "pipeline.env",
                process_env={"RESOURCE_PREFIX": prefix, "MEMBERS": "ada@example.com", "CONTROL_PLANE_CIDR": cidr},
            ),
            tmp_path / prefix,
        )
        for prefix, cidr in (("one", "172.16.0.0/28"), ("two", "172.16.0.16/28"))
    )
    shared = names_in_google(first) & names_in_google(second)
    assert {name for type_, name in shared if type_ != "google_project_service"} == {
        "my-project/roles/container.clusterViewer/user:ada@example.com"
    }
    of_buckets, of_others = (
        {
            grant["member"]
            for grant in read_stack(folder, "platform")["resource"]["google_storage_bucket_iam_member"].values()
        }
        for folder in (first, second)
    )
    assert len(of_buckets) == len(of_others) == 1
    assert of_buckets != of_others


def names_in_google(folder: Path) -> set[tuple[str, str]]:
    """What the stacks name by themselves, without what Terraform learns first, by type; what Google numbers, by the
    name that people see.
    """
    names = set()
    for stack in (*STACKS, "pipeline"):
        for address, resource in resources(read_stack(folder, stack)):
            type_ = address.split(".")[0]
            if type_.startswith("google_"):
                name = fill(facts_of(type_).name, {"project": "my-project", "region": "us-east5", **resource})
                seen = json.loads(resource.get("dashboard_json", "{}")).get("displayName")
                name = name or resource.get("display_name") or resource.get("name") or seen
                assert name, (address, resource)
                names |= {(type_, name)} if "${" not in name else set()
    return names


def test_with_a_project_number_no_google_stack_reads_the_cloud_to_plan(synthesis: Synthesis) -> None:
    reading = [stack for stack in STACKS if "data" in synthesis.stack("v5p-128", stack)]
    assert reading == ["platform", "queues", "observability"]
    assert "google_project" in synthesis.stack("default", "platform")["data"]
    assert "google_project" not in synthesis.stack("v5p-128", "platform")["data"]


def test_who_reads_data_is_logged_where_that_is_asked_for_and_paid(synthesis: Synthesis) -> None:
    type_ = "google_project_iam_audit_config"
    assert not synthesis.resources("default", "foundation", type_)
    logged = synthesis.resources("three-teams-four-groups", "foundation", type_).values()
    assert {(item["service"], config["log_type"]) for item in logged for config in item["audit_log_config"]} == {
        ("storage.googleapis.com", "DATA_READ"),
        ("storage.googleapis.com", "DATA_WRITE"),
        ("container.googleapis.com", "DATA_READ"),
    }
    assert not any("exempted_members" in config for item in logged for config in item["audit_log_config"])


def test_nodes_are_private_and_run_as_our_account(synthesis: Synthesis) -> None:
    cluster = synthesis.resources("default", "cluster", "google_container_cluster")["cluster"]
    assert cluster["private_cluster_config"]["enable_private_nodes"] is True
    account = "tpu-nodes@my-project.iam.gserviceaccount.com"
    configs = [cluster["node_config"]] + [
        pool["node_config"]
        for stack in ("cluster", "tpu-node-pools")
        for pool in synthesis.resources("default", stack, "google_container_node_pool").values()
    ]
    assert {config["service_account"] for config in configs} == {account}
    assert all(config["workload_metadata_config"] == {"mode": "GKE_METADATA"} for config in configs[1:])


def test_the_cluster_is_reached_over_its_dns_endpoint(synthesis: Synthesis) -> None:
    for stack in ("platform", "queues"):
        (kubernetes,) = synthesis.stack("default", stack)["provider"]["kubernetes"]
        assert "dns_endpoint_config" in kubernetes["host"]
        assert "cluster_ca_certificate" not in kubernetes


def test_a_colleague_takes_one_key_of_vars_env(tmp_path: Path) -> None:
    changed = with_settings(tmp_path, MEMBERS="alice@example.com,group:tpu@example.com", RBAC_SECURITY_GROUP=SECURITY)
    platform = json.loads(changed["platform"])["resource"]
    (binding,) = platform["kubernetes_role_binding_v1"].values()
    assert binding["metadata"]["namespace"].startswith("${kubernetes_namespace_v1.team-tpu-training")
    assert [(subject["kind"], subject["name"]) for subject in binding["subject"]] == [
        ("User", "alice@example.com"),
        ("Group", "tpu@example.com"),
    ]
    assert {
        grant["member"]
        for grant in platform["google_project_iam_member"].values()
        if grant["role"] == "roles/container.clusterViewer"
    } == {"user:alice@example.com", "group:tpu@example.com"}


def test_nobody_reaches_the_control_plane_by_its_address(synthesis: Synthesis) -> None:
    for case in ("default", "autopilot"):
        cluster = synthesis.resources(case, "cluster", "google_container_cluster")["cluster"]
        assert cluster["control_plane_endpoints_config"]["ip_endpoints_config"] == {"enabled": False}
        # The provider drops these networks while the endpoint is off: a block would be a change at every deploy.
        assert "master_authorized_networks_config" not in cluster


@pytest.mark.parametrize(
    ("settings", "cpu_zone"),
    [
        ({}, "us-east5-b"),
        ({"CPU_ZONE": "us-east5-a"}, "us-east5-a"),
        ({"REGION": "us-central1", "ZONE": "us-central1-ai1a", "TPU_TYPE": "tpu7x-64"}, "us-central1-a"),
        ({"REGION": "us-south1", "ZONE": "us-south1-ai1b", "CPU_ZONE": "us-south1-c"}, "us-south1-c"),
    ],
)
def test_cpu_nodes_are_in_a_standard_zone(settings: dict[str, str], cpu_zone: str, tmp_path: Path) -> None:
    stacks = with_settings(tmp_path, **settings)
    pools = json.loads(stacks["tpu-node-pools"])["resource"]["google_container_node_pool"].values()
    assert {zone for pool in pools for zone in pool["node_locations"]} == {settings.get("ZONE", "us-east5-b")}
    resources_ = json.loads(stacks["cluster"])["resource"]
    assert resources_["google_container_node_pool"]["cpu-pool"]["node_locations"] == [cpu_zone]
    cluster = resources_["google_container_cluster"]["cluster"]
    assert cluster["node_locations"] == [cpu_zone]
    assert "node_locations" in cluster["lifecycle"]["ignore_changes"]  # a change moves every pool, slices too


def test_providers_ask_for_a_token_when_they_need_one_and_nothing_writes_one_down(synthesis: Synthesis) -> None:
    plugin = {"api_version": "client.authentication.k8s.io/v1", "command": "tpuenv", "args": ["token"]}
    for stack in (synthesis.stack("default", name) for name in ("platform", "queues", "observability")):
        (kubernetes,) = stack["provider"]["kubernetes"]
        (helm,) = stack["provider"]["helm"]
        assert kubernetes == {"host": helm["kubernetes"]["host"], "exec": [plugin]}
        assert helm["kubernetes"] == {"host": kubernetes["host"], "exec": plugin}
    for case, name in EVERY_STACK:
        assert "access_token" not in synthesis.text(case, name), f"{name} of {case}"


def test_services_are_on_before_use_and_never_switched_off(synthesis: Synthesis) -> None:
    services = synthesis.resources("default", "foundation", "google_project_service")
    assert all(service["disable_on_destroy"] is False for service in services.values())
    needing = (
        "google_compute_network",
        "google_storage_bucket",
        "google_vertex_ai_tensorboard",
        "google_service_account",
    )
    for type_ in needing:
        for resource in synthesis.resources("default", "foundation", type_).values():
            assert resource["depends_on"][0].startswith("google_project_service."), type_


def test_namespaces_go_while_kueue_and_jobset_live(synthesis: Synthesis) -> None:
    namespaces = synthesis.resources("default", "platform", "kubernetes_namespace_v1")
    (team,) = (namespace for id_, namespace in namespaces.items() if id_.startswith("team-"))
    assert {"helm_release.jobset", "helm_release.kueue"} <= set(team["depends_on"])
    releases = synthesis.resources("default", "platform", "helm_release")
    assert releases["kueue"]["depends_on"] == ["kubernetes_namespace_v1.kueue-system", "helm_release.jobset"]
    assert releases["jobset"]["depends_on"] == ["kubernetes_namespace_v1.jobset-system"]
    assert not any(release.get("create_namespace") for release in releases.values()), "nothing would delete it"


def test_a_cluster_queue_is_drained_before_it_goes(synthesis: Synthesis) -> None:
    (drain,) = synthesis.resources("default", "queues", "helm_release").values()
    assert drain["depends_on"] == [
        "kubernetes_manifest.clusterqueue-tpu-training",
        "kubernetes_manifest.localqueue-tpu-training-default",
        "kubernetes_manifest.resourcequota-tpu-training-tpuenv",
    ]
    assert json.loads(drain["values"][0])["clusterQueue"] == "tpu-training"


def test_a_team_is_drained_before_anything_that_its_jobs_need_goes(synthesis: Synthesis) -> None:
    releases = synthesis.resources("three-teams-four-groups", "platform", "helm_release").values()
    drains = {
        json.loads(release["values"][0])["clusterQueue"]: release for release in releases if "evict" in release["name"]
    }
    assert set(drains) == {"research", "serving", "students"}
    platform = synthesis.stack("three-teams-four-groups", "platform")
    for team, drain in drains.items():
        needed = {address for address, _ in resources(platform) if f".team-{team}_" in address}
        members = {address for address, _ in resources(platform) if f".access_members-{team}_" in address}
        assert len(needed) == 9
        assert set(drain["depends_on"]) == needed | members


def test_the_gate_comes_after_the_webhooks_it_proves(synthesis: Synthesis) -> None:
    releases = synthesis.resources("default", "platform", "helm_release")
    (gate,) = (release for id_, release in releases.items() if id_.startswith("gate"))
    assert {"helm_release.jobset", "helm_release.kueue"} <= set(gate["depends_on"])


@pytest.mark.parametrize(("case", "stack"), EVERY_STACK)
def test_everything_is_labelled_and_every_output_described(case: str, stack: str, synthesis: Synthesis) -> None:
    synthesized = synthesis.stack(case, stack)
    (google,) = synthesized["provider"]["google"]
    assert google["default_labels"] == {
        "environment": synthesis.environment(case).settings.resource_prefix,
        "stack": stack,
    }
    assert all(output.get("description") for output in synthesized.get("output", {}).values())


def test_an_air_gapped_environment_names_no_public_registry(synthesis: Synthesis) -> None:
    for stack in STACKS:
        text = synthesis.text("air-gapped", stack)
        assert not any(registry in text for registry in ("registry.k8s.io", "mirror.gcr.io", "docker.io")), stack


def test_webhooks_get_a_firewall_rule_only_when_asked(synthesis: Synthesis) -> None:
    assert not synthesis.resources("default", "foundation", "google_compute_firewall")
    (rule,) = synthesis.resources("air-gapped", "foundation", "google_compute_firewall").values()
    assert rule["source_ranges"] == ["172.16.0.0/28"]
    assert rule["allow"] == [{"ports": ["9443"], "protocol": "tcp"}]


def test_a_maintenance_exclusion_is_dated(synthesis: Synthesis) -> None:
    policy = synthesis.resources("maintenance-exclusion", "cluster", "google_container_cluster")["cluster"][
        "maintenance_policy"
    ]
    assert policy["maintenance_exclusion"] == [
        {
            "exclusion_name": "training",
            "start_time": "2027-01-01T00:00:00Z",
            "end_time": "2027-03-01T00:00:00Z",
            "exclusion_options": {"scope": "NO_MINOR_OR_NODE_UPGRADES"},
        }
    ]


def test_no_path_of_this_machine_gets_into_a_stack(synthesis: Synthesis) -> None:
    for stack in stacks_of("pipeline"):
        assert os.fspath(Path.cwd()) not in synthesis.text("pipeline", stack)
