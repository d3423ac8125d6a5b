"""Rules of clusters and node pools: each is broken once with the product's own configuration, changed in one place."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from rehearsal.terraform.resource_type import Refusal
from rehearsal.terraform.values import value_at
from tests.rehearsal.fake import FakeCloud

CLUSTER = "google_container_cluster.cluster"
CPU = "google_container_node_pool.cpu-pool"
TPU = "google_container_node_pool.tpu-0"
FULL_NAME = "projects/my-project/locations/us-east5/clusters/tpu-cluster"
SUBNET = "projects/my-project/regions/us-east5/subnetworks/tpu-subnet"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "c" * 41}, "at most 40 lower-case letters"),
        (
            {"network": "projects/my-project/global/networks/x"},
            "404: Not found: network projects/my-project/global/networks/x",
        ),
        ({"subnetwork": "x"}, "404: Not found: subnetwork projects/my-project/regions/us-east5/subnetworks/x"),
        ({"node_locations": ["us-central1-a"]}, "zone 'us-central1-a' is not in region 'us-east5'"),
        (
            {"ip_allocation_policy__cluster_secondary_range_name": "x"},
            f"Pod secondary range 'x' does not exist in .*{SUBNET}",
        ),
        ({"ip_allocation_policy__services_secondary_range_name": "x"}, "Services secondary range 'x' does not exist"),
        ({"private_cluster_config__master_ipv4_cidr_block": "172.16.0.0/24"}, "Invalid master_ipv4_cidr_block .* /28"),
        (
            {"private_cluster_config__master_ipv4_cidr_block": "10.0.1.0/28"},
            "overlaps with an existing network 10.0.0.0/20",
        ),
        (
            {"node_config__service_account": "x@y.iam.gserviceaccount.com"},
            '"x@y.iam.gserviceaccount.com" does not exist',
        ),
        ({"workload_identity_config__workload_pool": "other.svc.id.goog"}, "not of the form my-project.svc.id.goog"),
        ({"initial_node_count": 0}, "Cluster.initial_node_count must be greater than zero"),
        (
            {"monitoring_config__enable_components": ["TPU"]},
            "expected monitoring_config.0.enable_components to be one of",
        ),
    ],
)
def test_a_cluster_that_gke_refuses(deployed: FakeCloud, changes: dict[str, object], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        deployed.again(CLUSTER, **changes)


def test_a_cluster_that_changes_its_zones_takes_every_pool_along(deployed: FakeCloud) -> None:
    deployed.change(CLUSTER, node_locations=["us-east5-a"])
    for pool in (CPU, TPU):
        state = deployed.read(pool)
        assert state is not None
        assert state["node_locations"] == ["us-east5-a"]


def test_a_cluster_name_that_is_taken_is_409(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match=f"Error creating cluster: googleapi: Error 409: Already exists: {FULL_NAME}"):
        deployed.make("google_container_cluster.two", like=CLUSTER)


def test_a_subnet_of_another_network_is_refused(deployed: FakeCloud) -> None:
    deployed.make("google_compute_network.other", name="other", auto_create_subnetworks=False)
    with pytest.raises(Refusal, match="does not belong to network projects/my-project/global/networks/other"):
        deployed.make("google_container_cluster.two", like=CLUSTER, name="two", network="other")


def test_two_clusters_do_not_share_a_range_for_services(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match="Services secondary range 'tpu-services' is in use by"):
        deployed.make("google_container_cluster.two", like=CLUSTER, name="two")


@pytest.mark.parametrize(
    ("start", "end", "scope", "channel", "words"),
    [
        ("2026-03-02", "2026-03-01", "NO_MINOR_UPGRADES", "REGULAR", "must end after it starts"),
        ("2026-01-01", "2999-12-31", "NO_MINOR_OR_NODE_UPGRADES", "REGULAR", "before the minor version's end of life"),
        ("2026-01-01", "2999-12-31", "NO_MINOR_UPGRADES", "EXTENDED", "before the minor version's end of life"),
        ("2026-01-01", "2026-02-15", "NO_MINOR_UPGRADES", "UNSPECIFIED", "requires a release channel"),
    ],
)
def test_a_maintenance_exclusion_that_gke_refuses(
    deployed: FakeCloud, start: str, end: str, scope: str, channel: str, words: str
) -> None:
    exclusion = {
        "exclusion_name": "e",
        "start_time": f"{start}T00:00:00Z",
        "end_time": f"{end}T00:00:00Z",
        "exclusion_options": [{"scope": scope}],
    }
    with pytest.raises(Refusal, match=words):
        deployed.change(
            CLUSTER, release_channel__channel=channel, maintenance_policy__maintenance_exclusion=[exclusion]
        )


def test_a_maintenance_exclusion_lasts_until_the_end_of_support(deployed: FakeCloud) -> None:
    end = datetime.now(timezone.utc) + timedelta(days=400)
    exclusion = {
        "exclusion_name": "e",
        "start_time": "2026-01-01T00:00:00Z",
        "end_time": f"{end:%Y-%m-%dT%H:%M:%SZ}",
        "exclusion_options": [{"scope": "NO_MINOR_OR_NODE_UPGRADES"}],
    }
    deployed.change(CLUSTER, maintenance_policy__maintenance_exclusion=[exclusion])
    cluster = deployed.read(CLUSTER)
    assert cluster and value_at(cluster, "maintenance_policy.maintenance_exclusion")[0]["exclusion_name"] == "e"


@pytest.mark.parametrize("protection", [True, None])
def test_the_providers_own_protection_refuses_to_delete_a_cluster(deployed: FakeCloud, protection: bool | None) -> None:
    deployed.change(CLUSTER, deletion_protection=protection)
    with pytest.raises(Refusal, match="Cannot destroy cluster because deletion_protection is set to true"):
        deployed.destroy(CLUSTER)


def test_a_cluster_takes_its_pools_and_objects_with_it(deployed: FakeCloud) -> None:
    deployed.destroy(CLUSTER)
    assert deployed.read(TPU) is None
    assert len(deployed.cloud.find("kubernetes")) == 0
    assert len(deployed.cloud.find("helm_release")) == 0


def test_networking_of_a_cluster_forces_replacement_and_its_channel_does_not(deployed: FakeCloud) -> None:
    assert deployed.plan(CLUSTER, datapath_provider="LEGACY_DATAPATH")[1] == [("datapath_provider",)]
    assert deployed.plan(CLUSTER, release_channel__channel="STABLE")[1] == []


def test_a_pool_needs_its_cluster(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match="404: Not found: projects/my-project/locations/us-east5/clusters/nowhere"):
        deployed.make("google_container_node_pool.two", like=CPU, cluster="nowhere")


def test_a_pool_name_that_is_taken_is_409(deployed: FakeCloud) -> None:
    with pytest.raises(
        Refusal, match=f"Error creating NodePool: googleapi: Error 409: Already exists: {FULL_NAME}/nodePools/cpu"
    ):
        deployed.make("google_container_node_pool.two", like=CPU)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "p" * 41}, "at most 40 lower-case letters"),
        ({"node_count": 1}, "node_count cannot be set on a node pool with autoscaling"),
        ({"autoscaling__min_node_count": 5}, "Invalid autoscaling limits: minimum 5, maximum 4"),
        ({"max_pods_per_node": 300}, "max_pods_per_node 300 is not between 8 and 256"),
        ({"node_config__service_account": "x@y.iam.gserviceaccount.com"}, "does not exist"),
        (
            {"node_config__disk_type": "hyperdisk-balanced"},
            "cannot be used as a boot disk with machine type n2-standard-8",
        ),
        (
            {"node_config__machine_type": "c4-standard-8"},
            "pd-balanced cannot be used as a boot disk with machine type c4-standard-8",
        ),
        ({"network_config": [{"pod_range": "x"}]}, f"Pod secondary range 'x' does not exist in subnetwork '{SUBNET}'"),
        (
            {"placement_policy": [{"type": "COMPACT", "tpu_topology": "4x4"}]},
            "TPU topology is not supported for machine type",
        ),
    ],
)
def test_a_pool_that_gke_refuses(deployed: FakeCloud, changes: dict[str, object], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        deployed.make("google_container_node_pool.two", like=CPU, **({"name": "two"} | changes))


def test_gke_metadata_needs_workload_identity_on_the_cluster(deployed: FakeCloud) -> None:
    deployed.cloud.change(
        "google_container_cluster", FULL_NAME, lambda cluster: cluster.update(workload_identity_config=[])
    )
    with pytest.raises(Refusal, match="GKE_METADATA requires Workload Identity on the cluster"):
        deployed.make("google_container_node_pool.two", like=CPU, name="two")


def test_nodes_need_addresses_in_the_subnet(deployed: FakeCloud) -> None:
    with pytest.raises(
        Refusal, match=r"IP_SPACE_EXHAUSTED: IP space of '.*/tpu-subnet' is exhausted \(4107 nodes, room for 4092"
    ):
        deployed.make(
            "google_container_node_pool.two", like=CPU, name="two", initial_node_count=4096, max_pods_per_node=8
        )


def test_a_node_takes_a_power_of_two_of_at_least_twice_its_pods(deployed: FakeCloud) -> None:
    """The product's 8 TPU hosts take 32 addresses each, its CPU and 2 system nodes 256; 10.4.0.0/14 has 262144."""
    left = (262144 - 8 * 32 - 3 * 256) // 256
    deployed.make("google_container_node_pool.fits", like=CPU, name="fits", initial_node_count=left)
    with pytest.raises(Refusal, match=r"is exhausted \(pods need 262400 addresses, 10.4.0.0/14 has 262144\)"):
        deployed.make("google_container_node_pool.more", like=CPU, name="more", initial_node_count=1)


def test_the_first_size_of_a_pool_forces_replacement(deployed: FakeCloud) -> None:
    assert deployed.plan(CPU, initial_node_count=2)[1] == [("initial_node_count",)]
    assert deployed.plan(CPU, node_config__spot=True)[1] == [("node_config", 0, "spot")]
    assert deployed.plan(CPU, autoscaling__max_node_count=9)[1] == []


def test_a_pool_resized_behind_terraforms_back_shows(deployed: FakeCloud) -> None:
    deployed.cloud.change(
        "google_container_node_pool", f"{FULL_NAME}/nodePools/tpu-0", lambda values: values.update(node_count=3)
    )
    planned, _ = deployed.plan(TPU)
    assert planned["node_count"] == 4
