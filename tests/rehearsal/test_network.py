"""Rules of networks: each is broken once with the product's own configuration, changed in one place."""

from __future__ import annotations

import pytest

from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.fake import FakeCloud

NETWORK = "google_compute_network.network"
SUBNET = "google_compute_subnetwork.subnet"
ROUTER = "google_compute_router.router"
NAT = "google_compute_router_nat.nat"
CLUSTER = "google_container_cluster.cluster"

FULL_NETWORK = "projects/my-project/global/networks/tpu-network"
COMPUTE = "projects/my-project/services/compute.googleapis.com"


def test_an_api_that_is_off_is_refused_in_googles_words(deployed: FakeCloud) -> None:
    deployed.cloud.delete("google_project_service", COMPUTE)
    with pytest.raises(
        Refusal, match=r"compute.googleapis.com has not been used in project 123456789012 before or it is"
    ):
        deployed.make("google_compute_network.other", like=NETWORK, name="other")


def test_a_project_that_does_not_exist_is_refused(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match=r"403: Permission denied on resource project somebody-elses"):
        deployed.make("google_compute_network.other", like=NETWORK, name="other", project="somebody-elses")


def test_a_name_that_is_taken_is_409(deployed: FakeCloud) -> None:
    with pytest.raises(
        Refusal, match=rf"Error creating Network: googleapi: Error 409: The resource '{FULL_NETWORK}' already"
    ):
        deployed.make("google_compute_network.other", like=NETWORK)


@pytest.mark.parametrize("name", ["Network", "9net", "net_work", "n" * 64, "net-"])
def test_a_name_outside_of_rfc_1035_is_refused(empty: FakeCloud, name: str) -> None:
    with pytest.raises(Refusal, match=r"Invalid value for field 'resource.name'"):
        empty.make("google_compute_network.n", name=name)


def test_an_mtu_above_jumbo_frames_is_refused(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match=r"'9000'. Must be between 1300 and 8896"):
        deployed.change(NETWORK, mtu=9000)


@pytest.mark.parametrize("address", [SUBNET, ROUTER])
def test_a_network_that_does_not_exist_is_refused(deployed: FakeCloud, address: str) -> None:
    with pytest.raises(Refusal, match=r"404: The resource 'projects/my-project/global/networks/nowhere' was not found"):
        deployed.make(f"{address}-2", like=address, name="other", network="nowhere")


def test_ranges_of_one_subnet_must_not_overlap(deployed: FakeCloud) -> None:
    ranges = [{"range_name": "pods", "ip_cidr_range": "10.0.8.0/21"}]
    with pytest.raises(
        Refusal, match=r"IP range 10.0.8.0/21 of secondary range 'pods' conflicts with IP range 10.0.0.0/20"
    ):
        deployed.again(SUBNET, secondary_ip_range=ranges)


def test_ranges_of_two_subnets_must_not_overlap(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match=r"10.4.0.0/16 conflicts with existing subnetwork .*tpu-subnet' \(10.4.0.0/14\)"):
        deployed.make(
            "google_compute_subnetwork.two", like=SUBNET, name="two", ip_cidr_range="10.4.0.0/16", secondary_ip_range=[]
        )


def test_a_range_too_small_for_google_is_refused(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match=r"Invalid IPCidrRange 10.99.0.0/30"):
        deployed.make(
            "google_compute_subnetwork.two",
            like=SUBNET,
            name="two",
            ip_cidr_range="10.99.0.0/30",
            secondary_ip_range=[],
        )


def test_an_auto_mode_network_keeps_its_own_ranges(empty: FakeCloud) -> None:
    empty.make("google_compute_network.auto", name="auto")
    with pytest.raises(Refusal, match="conflicts with the one that the auto mode network made"):
        empty.make("google_compute_subnetwork.s", name="s", network="auto", ip_cidr_range="10.128.0.0/20")


def test_a_network_in_use_is_not_deleted(deployed: FakeCloud) -> None:
    with pytest.raises(
        Refusal, match=rf"network resource '{FULL_NETWORK}' is already being used by 'projects/my-project/.*'"
    ):
        deployed.destroy(NETWORK)


def test_a_subnet_in_use_is_not_deleted(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match=r"tpu-subnet' is already being used by '.*/clusters/tpu-cluster'"):
        deployed.destroy(SUBNET)


def test_a_range_that_a_cluster_uses_is_not_changed(deployed: FakeCloud) -> None:
    services = {"range_name": "tpu-services", "ip_cidr_range": "10.1.0.0/20"}
    with pytest.raises(
        Refusal, match=r"Secondary range 'tpu-pods' of .* is in use by .*tpu-cluster' and cannot be changed"
    ):
        deployed.change(
            SUBNET, secondary_ip_range=[{"range_name": "tpu-pods", "ip_cidr_range": "10.8.0.0/14"}, services]
        )


def test_a_range_that_nobody_uses_may_be_added(deployed: FakeCloud) -> None:
    ranges = [
        *deployed.resources[SUBNET].config["secondary_ip_range"],
        {"range_name": "x", "ip_cidr_range": "10.9.0.0/20"},
    ]
    assert len(deployed.change(SUBNET, secondary_ip_range=ranges)["secondary_ip_range"]) == 3


def test_a_subnet_grows_in_place_and_is_replaced_to_shrink(deployed: FakeCloud) -> None:
    assert deployed.plan(SUBNET, ip_cidr_range="10.0.0.0/19")[1] == []
    assert deployed.plan(SUBNET, ip_cidr_range="10.0.0.0/21")[1] == [("ip_cidr_range",)]


def test_nat_needs_its_router(deployed: FakeCloud) -> None:
    with pytest.raises(
        Refusal, match=r"404: The resource 'projects/my-project/regions/us-east5/routers/none' was not found"
    ):
        deployed.make("google_compute_router_nat.two", like=NAT, router="none")


def test_only_one_nat_of_a_router_serves_all_subnets(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match="already serves all subnetworks of the router"):
        deployed.make("google_compute_router_nat.two", like=NAT, name="two")


def test_a_router_takes_its_nat_with_it(deployed: FakeCloud) -> None:
    deployed.destroy(ROUTER)
    assert deployed.read(NAT) is None


def test_the_names_of_google_are_refused_as_cloud_dns_does(empty: FakeCloud) -> None:
    zone = {"name": "names", "dns_name": "pkg.dev.", "visibility": "private"}
    with pytest.raises(Refusal, match=r"dns.googleapis.com has not been used in project"):
        empty.make("google_dns_managed_zone.names", **zone)
    empty.cloud.put("google_project_service", "projects/my-project/services/dns.googleapis.com", {})
    empty.make("google_compute_network.network", name="tpu-network")
    where = [{"networks": [{"network_url": FULL_NETWORK}], "gke_clusters": []}]
    with pytest.raises(Refusal, match=r"404: The resource 'projects/my-project/global/networks/nowhere' was not found"):
        empty.make(
            "google_dns_managed_zone.other",
            **zone,
            private_visibility_config=[{"networks": [{"network_url": "nowhere"}], "gke_clusters": []}],
        )
    empty.make("google_dns_managed_zone.names", **zone, private_visibility_config=where)
    record = {"managed_zone": "names", "type": "A", "ttl": 300, "rrdatas": ["199.36.153.8"]}
    with pytest.raises(Refusal, match=r"Invalid value for 'entity.change.additions\[0\].name': 'gcr.io.'"):
        empty.make("google_dns_record_set.a", name="gcr.io.", **record)
    empty.make("google_dns_record_set.a", name="*.pkg.dev.", **record)
    with pytest.raises(Refusal, match=r"'projects/my-project/managedZones/names' is already being used by"):
        empty.destroy("google_dns_managed_zone.names")
    with pytest.raises(Refusal, match=r"is already being used by 'projects/my-project/managedZones/names'"):
        empty.destroy("google_compute_network.network")
    for address in ("google_dns_record_set.a", "google_dns_managed_zone.names", "google_compute_network.network"):
        empty.destroy(address)
