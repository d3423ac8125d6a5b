"""What a change of a resource's configuration is planned to do, by what is known of the real providers."""

from __future__ import annotations

from dataclasses import replace

from rehearsal.terraform.values import Unknown
from tests.rehearsal.fake import FakeCloud
from tests.rehearsal.proposals import complete

POOL = "google_container_node_pool.tpu-0"
NETWORK = "google_compute_network.network"


def test_another_topology_is_planned_in_place_and_never_applied(deployed: FakeCloud) -> None:
    deployed.warnings.clear()
    planned, replaced = deployed.plan(POOL, placement_policy__tpu_topology="2x8")
    assert (planned["placement_policy"][0]["tpu_topology"], replaced) == ("2x8", [])
    deployed.change(POOL, placement_policy__tpu_topology="2x8")
    assert deployed.resources[POOL].state is not None
    assert deployed.resources[POOL].state["placement_policy"][0]["tpu_topology"] == "4x4"
    assert not deployed.unchanged(POOL)
    (warning,) = deployed.warnings
    assert "google_container_node_pool: the provider plans a change of placement_policy.tpu_topology" in warning


def test_a_placement_policy_that_goes_replaces_the_node_pool(deployed: FakeCloud) -> None:
    assert deployed.plan(POOL, placement_policy=None)[1] == [("placement_policy",)]


def test_another_machine_type_or_disk_is_planned_in_place(deployed: FakeCloud) -> None:
    changes = {"node_config__machine_type": "ct5p-hightpu-4t", "node_config__disk_type": "pd-balanced"}
    assert deployed.plan(POOL, **changes)[1] == []


def test_a_block_that_nobody_writes_any_more_stays_where_the_server_may_decide_it(deployed: FakeCloud) -> None:
    cluster = "google_container_cluster.cluster"
    state = deployed.resources[cluster].state
    assert state is not None
    assert deployed.plan(cluster, workload_identity_config=None) == (state, [])


def test_a_block_that_the_server_decides_is_not_known_before(deployed: FakeCloud) -> None:
    address = "google_container_node_pool.two"
    deployed.resources[address] = replace(deployed.resources[POOL], address=address)
    item = deployed.resources[address]
    client, kind, block, provider = deployed._parts(item)
    config = complete(block, {"name": "two", "cluster": "tpu-cluster", "node_count": 1})
    planned, _ = provider.plan(client, kind, block, None, config, config)
    assert isinstance(planned["upgrade_settings"], Unknown)


def test_spot_replaces_the_node_pool(deployed: FakeCloud) -> None:
    assert deployed.plan(POOL, node_config__spot=True)[1] == [("node_config", 0, "spot")]


def test_the_providers_defaults_are_in_the_state_as_in_the_real_one(deployed: FakeCloud) -> None:
    state = deployed.resources[NETWORK].state
    assert state is not None
    assert state["network_firewall_policy_enforcement_order"] == "AFTER_CLASSIC_FIREWALL"
    bucket = deployed.resources["google_storage_bucket.bucket-tpu-training"].state
    assert bucket is not None
    assert bucket["location"] == "US-EAST5"


def test_a_default_that_somebody_changed_by_hand_is_planned_back(deployed: FakeCloud) -> None:
    name = "projects/my-project/global/networks/tpu-network"
    deployed.cloud.change(
        "google_compute_network",
        name,
        lambda network: network.update(network_firewall_policy_enforcement_order="BEFORE_CLASSIC_FIREWALL"),
    )
    planned, replaced = deployed.plan(NETWORK)
    assert (planned["network_firewall_policy_enforcement_order"], replaced) == ("AFTER_CLASSIC_FIREWALL", [])
    assert not deployed.unchanged(NETWORK)
