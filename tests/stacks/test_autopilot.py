"""The stacks of an Autopilot cluster: no node pool and no label of one, and our own identity on GKE's nodes."""

from __future__ import annotations

import json

import pytest

from stacks.app import NODE_POOLS
from tests.synthesis import Synthesis, stacks_of

CASE = "autopilot"
# ConflictsWith enable_autopilot: google 6.50.0, services/container/resource_container_cluster.go.
CONFLICTS = {
    *("default_max_pods_per_node", "enable_intranode_visibility", "enable_shielded_nodes", "network_policy"),
    *("node_pool", "remove_default_node_pool"),
    # These GKE refuses, or they are of pools that are not there.
    *("initial_node_count", "node_config", "node_locations", "node_pool_defaults"),
}


def test_the_cluster_has_our_account_and_nothing_that_autopilot_decides(synthesis: Synthesis) -> None:
    (cluster,) = synthesis.resources(CASE, "cluster", "google_container_cluster").values()
    assert cluster["enable_autopilot"] is True
    assert cluster.keys() & CONFLICTS == set()
    scaling = cluster["cluster_autoscaling"]
    assert scaling.keys() == {"auto_provisioning_defaults"}, "enabled and resource_limits conflict"
    account = scaling["auto_provisioning_defaults"]["service_account"]
    assert account == "tpu-nodes@my-project.iam.gserviceaccount.com"
    assert cluster["lifecycle"]["prevent_destroy"] is True


def test_there_is_no_node_pool_in_any_stack(synthesis: Synthesis) -> None:
    assert stacks_of(CASE) == ["foundation", "cluster", "platform", "queues", "observability"]
    folders = {path.name for path in (synthesis.folder(CASE) / "stacks").iterdir()}
    assert folders == set(stacks_of(CASE))
    assert all(not synthesis.resources(CASE, stack, "google_container_node_pool") for stack in stacks_of(CASE))
    assert NODE_POOLS not in (synthesis.folder(CASE) / "manifest.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("stack", ["platform", "queues"])
def test_nothing_in_the_cluster_selects_a_node_by_a_label_of_ours(stack: str, synthesis: Synthesis) -> None:
    assert "tpuenv/pool-group" not in json.dumps(synthesis.stack(CASE, stack))
    assert "tpuenv/pool-group" not in "".join(synthesis.manifests(CASE).values())


def test_kueue_gives_a_job_the_time_that_its_nodes_take(synthesis: Synthesis) -> None:
    """The case has flex-start, so a week, and two hours for a pod that is lost."""
    (kueue,) = (
        item for item in synthesis.resources(CASE, "platform", "helm_release").values() if item["name"] == "kueue"
    )
    configuration = json.loads(json.loads(kueue["values"][0])["managerConfig"]["controllerManagerConfigYaml"])
    assert configuration["waitForPodsReady"] == {"timeout": "168h", "recoveryTimeout": "2h"}
