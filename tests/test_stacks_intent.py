"""What the stacks promise, in words; the snapshots beside them show everything else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import environment
from stacks.app import app
from tests.synthesis import CASES, STACKS, Synthesis

AUTHORITATIVE = ("_iam_binding", "_iam_policy")
FORBIDDEN_ROLES = {"roles/owner", "roles/editor", "roles/storage.admin", "roles/iam.serviceAccountTokenCreator"}
# Renaming one of these destroys what it holds and makes an empty one.
STATEFUL = {
    "foundation": {
        "google_compute_network.network",
        "google_compute_subnetwork.subnet",
        "google_service_account.node-account",
        "google_storage_bucket.bucket-tpu-training",
        "google_artifact_registry_repository.registry",
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

CHANGES = ("create", "delete", "deletecollection", "patch", "update")

# A group of every capacity mode.
MODES = """\
tpu_pools:
  plain: {type: v6e-16, slices: 1}
  autoscaled: {type: v6e-16, slices: 1, autoscaled: true}
  spot: {type: v6e-16, slices: 1, capacity: spot}
  reservation: {type: v6e-16, slices: 1, capacity: reservation, reservation: mine, reservation_block: block-1}
  flex: {type: v6e-16, slices: 1, capacity: flex-start, max_run_hours: 24}
  queued: {type: v6e-16, slices: 1, capacity: queued}
teams:
  research: {}
"""


def with_settings(folder: Path, **changes: str) -> dict[str, str]:
    """The text of every stack of the default environment with some settings changed, by stack."""
    wanted = environment.load(Path("tests/cases/default.env"), process_env=changes)
    app(wanted, folder).synth()
    return {stack: (folder / "stacks" / stack / "cdk.tf.json").read_text(encoding="utf-8") for stack in STACKS}


def with_fleet(folder: Path, fleet: str) -> dict[str, str]:
    """The text of every stack of an environment of that fleet.yaml, by stack."""
    folder.mkdir(exist_ok=True)
    (folder / "fleet.yaml").write_text(fleet, encoding="utf-8")
    wanted = environment.load(Path("tests/cases/default.env"), process_env={}, fleet=folder / "fleet.yaml")
    app(wanted, folder).synth()
    return {stack: (folder / "stacks" / stack / "cdk.tf.json").read_text(encoding="utf-8") for stack in STACKS}


def node_pools(stacks: dict[str, str]) -> dict[str, str]:
    """The JSON of every TPU node pool, by name."""
    pools = json.loads(stacks["tpu-node-pools"])["resource"]["google_container_node_pool"]
    return {name: json.dumps(pool, sort_keys=True) for name, pool in pools.items()}


def hosts(pool: dict[str, Any]) -> int:
    """How many nodes a node pool has when it has any."""
    return int(pool["node_count"] if "node_count" in pool else pool["autoscaling"]["max_node_count"])


def resources(stack: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every resource of a stack with its address."""
    for type_, by_id in stack.get("resource", {}).items():
        for id_, resource in by_id.items():
            yield f"{type_}.{id_}", resource


def all_resources(synthesis: Synthesis, case: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for stack in STACKS:
        yield from resources(synthesis.stack(case, stack))


def test_every_stack_keeps_its_state_under_its_own_prefix(synthesis: Synthesis) -> None:
    backends = [synthesis.stack("default", stack)["terraform"]["backend"]["gcs"] for stack in STACKS]
    assert [backend["prefix"] for backend in backends] == [f"tpu/{stack}" for stack in STACKS]
    assert {backend["bucket"] for backend in backends} == {"my-project-tpu-tf-state"}


def test_the_stacks_are_a_line_and_not_a_tree(synthesis: Synthesis) -> None:
    manifest = json.loads((synthesis.folder("default") / "manifest.json").read_text(encoding="utf-8"))
    order = {name: stack["dependencies"] for name, stack in manifest["stacks"].items()}
    assert order == {stack: STACKS[index - 1 : index] if index else [] for index, stack in enumerate(STACKS)}


def test_the_addresses_of_everything_stateful_stay(synthesis: Synthesis) -> None:
    for stack, expected in STATEFUL.items():
        assert expected <= {address for address, _ in resources(synthesis.stack("default", stack))}


@pytest.mark.parametrize("stack", STACKS)
def test_a_protected_stack_cannot_be_destroyed(stack: str, synthesis: Synthesis) -> None:
    assert synthesis.resources("default", stack, "terraform_data")["guard"]["lifecycle"]["prevent_destroy"] is True


def test_lifting_protection_frees_all_but_the_data(tmp_path: Path) -> None:
    stacks = with_settings(tmp_path, DELETION_PROTECTION="false")
    protected = {
        address
        for text in stacks.values()
        for address, resource in resources(json.loads(text))
        if resource.get("lifecycle", {}).get("prevent_destroy")
    }
    assert protected == {
        "google_storage_bucket.bucket-tpu-training",
        "google_artifact_registry_repository.registry",
        "google_vertex_ai_tensorboard.tensorboard",
    }


def test_destroying_data_takes_two_words(tmp_path: Path) -> None:
    stacks = with_settings(tmp_path, DELETION_PROTECTION="false", DESTROY_DATA="true")
    assert not any('"prevent_destroy": true' in text for text in stacks.values())
    bucket = json.loads(stacks["foundation"])["resource"]["google_storage_bucket"]["bucket-tpu-training"]
    assert bucket["force_destroy"] is True


def test_the_providers_own_protection_stays_out_of_the_state(synthesis: Synthesis) -> None:
    assert (
        synthesis.resources("default", "cluster", "google_container_cluster")["cluster"]["deletion_protection"] is False
    )


def test_a_larger_slice_changes_what_depends_on_it_and_nothing_else(tmp_path: Path, synthesis: Synthesis) -> None:
    changed = with_settings(tmp_path, TPU_TYPE="v6e-32")
    same = {stack for stack in STACKS if changed[stack] == synthesis.text("default", stack)}
    assert same == {"foundation", "cluster", "platform"}
    pools = json.loads(changed["tpu-node-pools"])["resource"]["google_container_node_pool"]
    assert {pool["node_count"] for pool in pools.values()} == {8}
    assert {pool["placement_policy"]["tpu_topology"] for pool in pools.values()} == {"4x8"}
    queues = json.loads(changed["queues"])["resource"]["kubernetes_manifest"]
    flavor = queues["resourceflavor-tpu"]["manifest"]["spec"]["nodeLabels"]
    assert flavor["cloud.google.com/gke-tpu-topology"] == "4x8"
    covered = queues["clusterqueue-tpu-training"]["manifest"]["spec"]["resourceGroups"][0]["flavors"]
    quota = {each["name"]: each["nominalQuota"] for each in covered[1]["resources"]}
    assert quota["google.com/tpu"] == "64"


@pytest.mark.parametrize("case", CASES)
def test_a_slice_is_one_node_pool_of_all_its_hosts_or_none_in_one_zone(case: str, synthesis: Synthesis) -> None:
    pools = synthesis.resources(case, "tpu-node-pools", "google_container_node_pool")
    groups = {pool: group for group in synthesis.environment(case).groups for pool in group.node_pools}
    assert set(pools) == set(groups)
    for name, pool in pools.items():
        slice_ = groups[name].slice
        assert hosts(pool) * slice_.chips_per_host == slice_.chips
        assert pool["node_locations"] == [groups[name].zone]
        assert ("autoscaling" in pool) == groups[name].autoscaled
        assert not {"total_min_node_count", "total_max_node_count"} & set(pool.get("autoscaling", {}))


@pytest.mark.parametrize("case", CASES)
def test_a_topology_is_placed_if_and_only_if_a_slice_has_several_hosts(case: str, synthesis: Synthesis) -> None:
    for pool in synthesis.resources(case, "tpu-node-pools", "google_container_node_pool").values():
        placement = pool.get("placement_policy")
        assert (placement is not None) == (hosts(pool) > 1)
        assert placement is None or placement["type"] == "COMPACT"


def test_every_capacity_mode_asks_for_its_machines_in_its_own_way(tmp_path: Path) -> None:
    pools = {
        name: pool["node_config"] | {key: pool.get(key) for key in ("autoscaling", "management", "queued_provisioning")}
        for name, pool in json.loads(with_fleet(tmp_path, MODES)["tpu-node-pools"])["resource"][
            "google_container_node_pool"
        ].items()
    }
    scaled = {"min_node_count": 0, "max_node_count": 4, "location_policy": "ANY"}
    assert {name for name, pool in pools.items() if pool.get("spot")} == {"spot-0"}
    assert pools["reservation-0"]["reservation_affinity"] == {
        "consume_reservation_type": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["mine/reservationBlocks/block-1"],
    }
    for name in ("flex-0", "queued-0"):
        assert pools[name]["flex_start"] is True
        assert pools[name]["reservation_affinity"] == {"consume_reservation_type": "NO_RESERVATION"}
        assert pools[name]["management"] == {"auto_repair": False, "auto_upgrade": True}
        assert pools[name]["autoscaling"] == scaled
    assert pools["flex-0"]["max_run_duration"] == "86400s"
    assert {name for name, pool in pools.items() if pool["queued_provisioning"]} == {"queued-0"}
    assert pools["autoscaled-0"]["autoscaling"] == scaled
    assert "reservation_affinity" not in pools["plain-0"]


def test_adding_removing_or_resizing_a_group_leaves_every_other_pool_as_it_was(tmp_path: Path) -> None:
    before = node_pools(with_fleet(tmp_path / "before", MODES))
    changed = MODES.replace("plain: {type: v6e-16, slices: 1}", "plain: {type: v6e-32, slices: 3}").replace(
        "  spot: {type: v6e-16, slices: 1, capacity: spot}\n", "  first: {type: v5p-8, slices: 2}\n"
    )
    after = node_pools(with_fleet(tmp_path / "after", changed))
    assert set(before) - set(after) == {"spot-0"}
    assert set(after) - set(before) == {"plain-1", "plain-2", "first-0", "first-1"}
    assert {name for name in set(before) & set(after) if before[name] != after[name]} == {"plain-0"}


def test_the_implicit_fleet_written_out_gives_the_same_bytes(synthesis: Synthesis) -> None:
    for stack in STACKS:
        assert synthesis.text("implicit-written-out", stack) == synthesis.text("default", stack)
    assert synthesis.manifests("implicit-written-out") == synthesis.manifests("default")


def test_kueue_waits_for_pods_as_long_as_their_machines_may_take(tmp_path: Path, synthesis: Synthesis) -> None:
    def timeout(platform: str) -> str:
        (values,) = json.loads(platform)["resource"]["helm_release"]["kueue"]["values"]
        configuration = json.loads(json.loads(values)["managerConfig"]["controllerManagerConfigYaml"])
        return str(configuration["waitForPodsReady"]["timeout"])

    assert timeout(synthesis.text("default", "platform")) == "30m"
    autoscaled = "tpu_pools: {tpu: {type: v6e-16, slices: 1, autoscaled: true}}\nteams: {research: {}}\n"
    assert timeout(with_fleet(tmp_path / "autoscaled", autoscaled)["platform"]) == "2h"
    assert timeout(with_fleet(tmp_path / "scheduled", MODES)["platform"]) == "168h"


def test_members_reach_the_cluster_and_kubernetes_decides_the_rest(synthesis: Synthesis) -> None:
    members = {
        f"{member.kind.value}:{member.email}"
        for team in synthesis.environment("three-teams-four-groups").teams
        for member in team.members
    }
    grants = synthesis.resources("three-teams-four-groups", "platform", "google_project_iam_member").values()
    assert {(each["role"], each["member"]) for each in grants if not each["member"].startswith("principal:")} == {
        ("roles/container.clusterViewer", member) for member in members
    }


def test_members_make_no_pods_and_touch_no_queues(synthesis: Synthesis) -> None:
    roles = synthesis.resources("three-teams-four-groups", "platform", "kubernetes_role_v1").values()
    assert len(roles) == 3
    for role in roles:
        allowed = {(kind, verb) for rule in role["rule"] for kind in rule["resources"] for verb in rule["verbs"]}
        assert {("jobs", "create"), ("jobsets", "create"), ("rayjobs", "create"), ("pods/log", "get")} <= allowed
        assert not allowed & {(kind, verb) for kind in ("pods", "localqueues", "workloads") for verb in CHANGES}
        assert not any(kind in ("*", "roles", "rolebindings", "serviceaccounts", "namespaces") for kind, _ in allowed)
    (reader,) = synthesis.resources("three-teams-four-groups", "platform", "kubernetes_cluster_role_v1").values()
    assert {verb for rule in reader["rule"] for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_a_team_is_bound_in_its_own_namespace_only(synthesis: Synthesis) -> None:
    environment_ = synthesis.environment("three-teams-four-groups")
    bindings = synthesis.resources("three-teams-four-groups", "platform", "kubernetes_role_binding_v1")
    namespaces = synthesis.resources("three-teams-four-groups", "platform", "kubernetes_namespace_v1")
    bound = {}
    for binding in bindings.values():
        id_ = binding["metadata"]["namespace"].split(".")[1]
        bound[namespaces[id_]["metadata"]["name"]] = {subject["name"] for subject in binding["subject"]}
    assert bound == {team.name: {member.email for member in team.members} for team in environment_.teams}


def test_groups_are_known_to_the_cluster_when_they_are_members(synthesis: Synthesis) -> None:
    cluster = synthesis.resources("three-teams-four-groups", "cluster", "google_container_cluster")["cluster"]
    wanted = synthesis.environment("three-teams-four-groups").settings.rbac_security_group
    assert cluster["authenticator_groups_config"] == {"security_group": wanted}
    assert "authenticator_groups_config" not in synthesis.text("default", "cluster")


def test_tpu7x_slices_name_a_workload_policy(synthesis: Synthesis) -> None:
    policies = synthesis.resources("tpu7x", "tpu-node-pools", "google_compute_resource_policy")
    (policy,) = policies.values()
    assert policy["workload_policy"] == {"type": "HIGH_THROUGHPUT", "accelerator_topology": "2x4x4"}
    pools = synthesis.resources("tpu7x", "tpu-node-pools", "google_container_node_pool")
    (id_,) = policies
    assert {pool["placement_policy"]["policy_name"] for pool in pools.values()} == {
        f"${{google_compute_resource_policy.{id_}.name}}"
    }


@pytest.mark.parametrize("case", CASES)
def test_nobody_is_granted_more_than_needed(case: str, synthesis: Synthesis) -> None:
    for address, resource in all_resources(synthesis, case):
        assert not address.split(".")[0].endswith(AUTHORITATIVE), f"{address} would remove other people's grants"
        assert resource.get("role") not in FORBIDDEN_ROLES, address


def test_a_teams_identity_reaches_its_own_bucket_only(synthesis: Synthesis) -> None:
    bindings = synthesis.resources("v5p-128", "platform", "google_storage_bucket_iam_member").values()
    member = (
        "principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/"
        "my-project.svc.id.goog/subject/ns/tpu-training/sa/training"
    )
    assert {(each["bucket"], each["role"], each["member"]) for each in bindings} == {
        ("my-project-tpu-tpu-training", "roles/storage.objectUser", member),
        ("my-project-tpu-tpu-training", "roles/storage.legacyBucketReader", member),
    }


def test_with_a_project_number_no_google_stack_reads_the_cloud_to_plan(synthesis: Synthesis) -> None:
    assert [stack for stack in STACKS if "data" not in synthesis.stack("v5p-128", stack)] == [
        "foundation",
        "cluster",
        "tpu-node-pools",
    ]
    assert "google_project" in synthesis.stack("default", "platform")["data"]
    assert "google_project" not in synthesis.stack("v5p-128", "platform")["data"]


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
    (namespace,) = synthesis.resources("default", "platform", "kubernetes_namespace_v1").values()
    assert {"helm_release.jobset", "helm_release.kueue"} <= set(namespace["depends_on"])
    assert synthesis.resources("default", "platform", "helm_release")["kueue"]["depends_on"] == ["helm_release.jobset"]


def test_a_cluster_queue_is_drained_before_it_goes(synthesis: Synthesis) -> None:
    (drain,) = synthesis.resources("default", "queues", "helm_release").values()
    assert drain["depends_on"] == [
        "kubernetes_manifest.clusterqueue-tpu-training",
        "kubernetes_manifest.localqueue-tpu-training-default",
    ]
    assert json.loads(drain["values"][0])["clusterQueue"] == "tpu-training"


def test_the_gate_comes_after_the_webhooks_it_proves(synthesis: Synthesis) -> None:
    releases = synthesis.resources("default", "platform", "helm_release")
    (gate,) = (release for id_, release in releases.items() if id_.startswith("gate"))
    assert {"helm_release.jobset", "helm_release.kueue"} <= set(gate["depends_on"])


@pytest.mark.parametrize("case", CASES)
def test_everything_is_labelled_and_every_output_described(case: str, synthesis: Synthesis) -> None:
    for stack in STACKS:
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
            "start_time": "2030-01-01T00:00:00Z",
            "end_time": "2030-03-01T00:00:00Z",
            "exclusion_options": {"scope": "NO_MINOR_OR_NODE_UPGRADES"},
        }
    ]


def test_no_path_of_this_machine_gets_into_a_stack(synthesis: Synthesis) -> None:
    for stack in STACKS:
        assert os.fspath(Path.cwd()) not in synthesis.text("default", stack)
