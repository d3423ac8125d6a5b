"""What the stacks promise of fleets: slices, capacity modes, teams and their members."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import environment
from stacks.app import NODE_POOLS
from tests.synthesis import CASES, HERE, STACKS, Synthesis, stacks_of, synthesize, texts

WITH_NODE_POOLS = [case for case in CASES if NODE_POOLS in stacks_of(case)]
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


def with_fleet(folder: Path, fleet: str) -> dict[str, str]:
    """The text of every stack of an environment of that fleet.yaml, by stack."""
    folder.mkdir(exist_ok=True)
    (folder / "fleet.yaml").write_text(fleet, encoding="utf-8")
    configured = environment.load(HERE / "cases" / "default.env", process_env={}, fleet=folder / "fleet.yaml")
    return texts(synthesize(configured, folder))


def node_pools(stacks: dict[str, str]) -> dict[str, str]:
    """The JSON of every TPU node pool, by name."""
    pools = json.loads(stacks["tpu-node-pools"])["resource"]["google_container_node_pool"]
    return {name: json.dumps(pool, sort_keys=True) for name, pool in pools.items()}


def hosts(pool: dict[str, Any]) -> int:
    """How many nodes a node pool has when it has any."""
    return int(pool["node_count"] if "node_count" in pool else pool["autoscaling"]["max_node_count"])


@pytest.mark.parametrize("case", WITH_NODE_POOLS)
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


@pytest.mark.parametrize("case", WITH_NODE_POOLS)
def test_a_topology_is_placed_if_and_only_if_a_slice_has_several_hosts(case: str, synthesis: Synthesis) -> None:
    for pool in synthesis.resources(case, "tpu-node-pools", "google_container_node_pool").values():
        placement = pool.get("placement_policy")
        assert (placement is not None) == (hosts(pool) > 1)
        # GKE refuses a compact placement beside a workload policy, and keeps no type then.
        assert placement is None or placement["type"] == ("" if "policy_name" in placement else "COMPACT")


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
    """For a running job's lost pods never the week that a job may wait for its first ones: its slices stand idle."""

    def timeouts(platform: str) -> tuple[str, str]:
        (values,) = json.loads(platform)["resource"]["helm_release"]["kueue"]["values"]
        configuration = json.loads(json.loads(values)["managerConfig"]["controllerManagerConfigYaml"])
        waiting = configuration["waitForPodsReady"]
        return waiting["timeout"], waiting["recoveryTimeout"]

    assert timeouts(synthesis.text("default", "platform")) == ("30m", "30m")
    autoscaled = "tpu_pools: {tpu: {type: v6e-16, slices: 1, autoscaled: true}}\nteams: {research: {}}\n"
    assert timeouts(with_fleet(tmp_path / "autoscaled", autoscaled)["platform"]) == ("2h", "2h")
    assert timeouts(with_fleet(tmp_path / "scheduled", MODES)["platform"]) == ("168h", "2h")
    queued = "".join(line for line in MODES.splitlines(keepends=True) if "flex-start" not in line)
    assert timeouts(with_fleet(tmp_path / "queued", queued)["platform"]) == ("2h", "2h"), (
        "Kueue admits a job of a queued group when its machines are there"
    )


def test_kueue_does_not_count_room_on_disks_which_no_queue_has_quota_of(synthesis: Synthesis) -> None:
    (values,) = json.loads(synthesis.text("default", "platform"))["resource"]["helm_release"]["kueue"]["values"]
    configuration = json.loads(json.loads(values)["managerConfig"]["controllerManagerConfigYaml"])
    assert configuration["resources"] == {"excludeResourcePrefixes": ["ephemeral-storage"]}


def test_members_reach_the_cluster_and_kubernetes_decides_the_rest(synthesis: Synthesis) -> None:
    members = {
        f"{member.kind.value}:{member.email}"
        for team in synthesis.environment("three-teams-four-groups").teams
        for member in team.members
    }
    grants = synthesis.resources("three-teams-four-groups", "platform", "google_project_iam_member").values()
    assert {(grant["role"], grant["member"]) for grant in grants if not grant["member"].startswith("principal:")} == {
        ("roles/container.clusterViewer", member) for member in members
    }


def test_members_may_ask_which_image_a_tag_names(synthesis: Synthesis) -> None:
    case = "three-teams-four-groups"
    environment = synthesis.environment(case)
    everybody = {f"{member.kind.value}:{member.email}" for team in environment.teams for member in team.members}
    grants = synthesis.resources(case, "platform", "google_artifact_registry_repository_iam_member").values()
    assert {(grant["repository"], grant["role"], grant["member"]) for grant in grants} == {
        (environment.names.registry, "roles/artifactregistry.reader", member) for member in everybody
    }


def test_members_make_no_pods_and_touch_no_queues(synthesis: Synthesis) -> None:
    roles = synthesis.resources("three-teams-four-groups", "platform", "kubernetes_role_v1").values()
    assert len(roles) == 3
    for role in roles:
        allowed = {(kind, verb) for rule in role["rule"] for kind in rule["resources"] for verb in rule["verbs"]}
        assert {("jobs", "create"), ("jobsets", "create"), ("rayjobs", "create"), ("pods/log", "get")} <= allowed
        # `ray job submit`, TensorBoard and debugging: kubectl's port-forward and exec, of WebSockets (get) and before.
        assert {(f"pods/{what}", verb) for what in ("portforward", "exec") for verb in ("create", "get")} <= allowed
        assert {("pods", "get"), ("pods", "list"), ("services", "get")} <= allowed
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
    group = synthesis.environment("three-teams-four-groups").settings.rbac_security_group
    assert cluster["authenticator_groups_config"] == {"security_group": group}
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
