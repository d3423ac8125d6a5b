"""Networks, subnets, routers, NAT, firewalls, private names."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import combinations

from rehearsal.cloud import Attributes, Object
from rehearsal.google.errors import bad_request, in_use, invalid, require
from rehearsal.google.locations import region_exists
from rehearsal.google.resource import Change, GoogleResource, Reference, matches, unused
from rehearsal.terraform.planning import Path
from rehearsal.terraform.values import value_at

NETWORK = "google_compute_network"
SUBNET = "google_compute_subnetwork"
ROUTER = "google_compute_router"
NAT = "google_compute_router_nat"
FIREWALL = "google_compute_firewall"
ZONE = "google_dns_managed_zone"
RECORDS = "google_dns_record_set"
CLUSTER = "google_container_cluster"
TPU_VM = "google_tpu_v2_vm"

IN_NETWORK = Reference(attribute="network", type_=NETWORK, default="default")
IN_SUBNET = Reference(attribute="subnetwork", type_=SUBNET, default="default")
TPU_VM_IN_SUBNET = Reference(attribute="network_config.subnetwork", type_=SUBNET, default="default")
ZONE_IN_NETWORK = Reference(attribute="private_visibility_config.networks.network_url", type_=NETWORK)
OF_ZONE = Reference(attribute="managed_zone", type_=ZONE)
OF_ROUTER = Reference(attribute="router", type_=ROUTER)

# RFC 1035: a lower-case letter, then letters, digits and dashes, 63 at most.
# https://cloud.google.com/compute/docs/naming-resources
name_is_valid = matches(
    "name",
    r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?",
    "Invalid value for field 'resource.name': '{}'. Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'",
    invalid,
)


def network_is_custom(change: Change) -> None:
    """An auto mode network creates its own subnets in 10.128.0.0/9.

    https://cloud.google.com/vpc/docs/vpc#subnet-ranges
    """
    network = change.get(NETWORK, IN_NETWORK.target(change.client, change.values)) or {}
    region = change.values.get("region") or change.client.settings.get("region")
    automatic = network.get("auto_create_subnetworks") is not False and change.prior is None
    require(
        not automatic or not ranges_of(change.values)[""].subnet_of(IPv4Network("10.128.0.0/9")),
        f"IP range of the subnetwork conflicts with the one that the auto mode network made in {region}",
        invalid,
    )


def mtu_is_valid(change: Change) -> None:
    """1300 to 8896 bytes. https://cloud.google.com/vpc/docs/mtu"""
    mtu = change.values.get("mtu") or 1460
    require(
        1300 <= mtu <= 8896, f"Invalid value for field 'resource.mtu': '{mtu}'. Must be between 1300 and 8896", invalid
    )


def ranges_of(subnet: Attributes) -> dict[str, IPv4Network]:
    """The ranges of a subnet by name; the primary one under "". Raises ApiError for what is not a range."""
    secondary = subnet.get("secondary_ip_range") or []
    return {
        name: _range(text)
        for name, text in [
            ("", subnet.get("ip_cidr_range")),
            *((str(item["range_name"]), item["ip_cidr_range"]) for item in secondary),
        ]
    }


def _range(text: object) -> IPv4Network:
    try:
        return IPv4Network(str(text))
    except ValueError as error:
        raise invalid(f"Invalid value for field 'resource.ipCidrRange': '{text}'. {error}") from error


def ranges_do_not_overlap(change: Change) -> None:
    """No two ranges of a network overlap, primary or secondary.

    https://cloud.google.com/vpc/docs/subnets#ipv4-ranges
    """
    ranges = ranges_of(change.values)
    for (name, network), (other_name, other) in combinations(ranges.items(), 2):
        require(
            not network.overlaps(other),
            f"IP range {other} of {_words(other_name)} conflicts with IP range {network} of {_words(name)}",
            invalid,
        )
    own_network = IN_NETWORK.target(change.client, change.values)
    for subnet in change.client.cloud.find(SUBNET):
        if subnet.name == change.name or IN_NETWORK.target(change.client, subnet.attributes) != own_network:
            continue
        for other in ranges_of(subnet.attributes).values():
            for network in ranges.values():
                require(
                    not network.overlaps(other),
                    f"Invalid IPCidrRange: {network} conflicts with existing subnetwork '{subnet.name}' ({other})",
                    invalid,
                )


def _words(range_name: str) -> str:
    return f"secondary range '{range_name}'" if range_name else "the subnetwork"


def ranges_are_valid(change: Change) -> None:
    """A subnet range has 4 addresses for Google and a prefix of /29 or shorter.

    https://cloud.google.com/vpc/docs/subnets#valid-ranges
    """
    for name, network in ranges_of(change.values).items():
        require(
            4 <= network.prefixlen <= 29,
            f"Invalid IPCidrRange {network} of {_words(name)}: the prefix must be between /4 and /29",
            invalid,
        )


def used_ranges_stay(change: Change) -> None:
    """A range can neither shrink nor be removed while a cluster uses it.

    https://cloud.google.com/vpc/docs/create-modify-vpc-networks#expand-subnet
    """
    before, after = ranges_of(change.prior or change.values), ranges_of(change.values)
    for cluster, used in _used_ranges(change):
        for name in used:
            require(
                before.get(name) == after.get(name) or name not in before,
                f"Secondary range '{name}' of '{change.name}' is in use by '{cluster.name}' and cannot be changed",
                in_use,
            )


def _used_ranges(change: Change) -> Iterator[tuple[Object, list[str]]]:
    """The clusters in a subnet, each with the names of the secondary ranges that it uses."""
    keys = ("cluster_secondary_range_name", "services_secondary_range_name")
    for cluster in IN_SUBNET.users(change, CLUSTER):
        names = [value_at(cluster.attributes, f"ip_allocation_policy.{key}") for key in keys]
        yield cluster, [str(name) for name in names if name]


def one_nat_serves_all(change: Change) -> None:
    """Only one NAT of a router may serve all subnets. https://cloud.google.com/nat/docs/nat-product-interactions"""
    served = "source_subnetwork_ip_ranges_to_nat"
    for nat in change.client.cloud.find(NAT, prefix=change.name.rpartition("/")[0] + "/"):
        both = {nat.attributes[served], change.values[served]}
        require(
            nat.name == change.name or "ALL_SUBNETWORKS_ALL_IP_RANGES" not in both,
            f"NAT '{nat.name}' already serves all subnetworks of the router",
            invalid,
        )


def delete_nat_of_router(change: Change) -> None:
    """Deleting a router deletes its NAT. https://cloud.google.com/nat/docs/set-up-manage-network-address-translation"""
    for nat in change.client.cloud.find(NAT, prefix=change.name + "/"):
        change.client.cloud.delete(nat.kind, nat.name)


def record_is_of_its_zone(change: Change) -> None:
    """https://cloud.google.com/dns/docs/records#adding_a_record"""
    zone, name = change.get(ZONE, OF_ZONE.target(change.client, change.values)) or {}, change.values["name"]
    within = f".{name}".endswith(f".{zone.get('dns_name')}")
    require(within, f"Invalid value for 'entity.change.additions[0].name': '{name}'", bad_request)


def shrinks(prior: Attributes, planned: Attributes) -> list[Path]:
    """A primary range that grows is changed in place, any other change replaces the subnet (the provider's
    `isShrinkageIpCidr`).
    """
    try:
        old, new = IPv4Network(prior["ip_cidr_range"]), IPv4Network(planned["ip_cidr_range"])
    except (ValueError, TypeError):
        return [("ip_cidr_range",)]
    return [] if old.subnet_of(new) else [("ip_cidr_range",)]


def subnet_values(change: Change) -> Attributes:
    """The first address of a subnet is its gateway.

    https://cloud.google.com/vpc/docs/subnets#unusable-ip-addresses-in-every-subnet
    """
    return {"gateway_address": str(ranges_of(change.values)[""][1]), "purpose": "PRIVATE", "stack_type": "IPV4_ONLY"}


RESOURCE_TYPES = (
    GoogleResource(
        type_=NETWORK,
        checks=(name_is_valid, mtu_is_valid),
        # https://cloud.google.com/vpc/docs/create-modify-vpc-networks#deleting_a_network
        removal=(
            unused("network resource", IN_NETWORK, SUBNET, ROUTER, FIREWALL, CLUSTER),
            unused("network resource", ZONE_IN_NETWORK, ZONE),
        ),
        computed=lambda _: {"mtu": 1460, "routing_mode": "REGIONAL"},
        state_only=("delete_default_routes_on_create",),
    ),
    GoogleResource(
        type_=SUBNET,
        checks=(
            name_is_valid,
            region_exists,
            IN_NETWORK,
            ranges_are_valid,
            network_is_custom,
            ranges_do_not_overlap,
            used_ranges_stay,
        ),
        # https://cloud.google.com/vpc/docs/create-modify-vpc-networks#deleting_subnets
        removal=(
            unused("subnetwork resource", IN_SUBNET, CLUSTER),
            unused("subnetwork resource", TPU_VM_IN_SUBNET, TPU_VM),
        ),
        computed=subnet_values,
        state_only=("send_secondary_ip_range_if_empty",),
        replaced_by=shrinks,
    ),
    GoogleResource(
        type_=ROUTER,
        checks=(name_is_valid, IN_NETWORK),
        deleted=delete_nat_of_router,
    ),
    GoogleResource(
        type_=NAT,
        checks=(name_is_valid, OF_ROUTER, one_nat_serves_all),
    ),
    GoogleResource(
        type_=FIREWALL,
        checks=(name_is_valid, IN_NETWORK),
        computed=lambda _: {"direction": "INGRESS"},
    ),
    GoogleResource(
        type_=ZONE,
        checks=(name_is_valid, ZONE_IN_NETWORK),
        # https://cloud.google.com/dns/docs/zones#delete-zone
        removal=(unused("managed zone", OF_ZONE, RECORDS),),
        state_only=("force_destroy",),
    ),
    GoogleResource(
        type_=RECORDS,
        checks=(OF_ZONE, record_is_of_its_zone),
    ),
)
