"""Networks, subnets, routers, NAT, firewalls, placement policies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network

from rehearsal.cloud import Attributes, Object
from rehearsal.google.locations import region_exists
from rehearsal.google.resource import ApiError, Change, GoogleResource, reference
from rehearsal.google.tpu import POLICY, POLICY_PATH, policy_is_unused
from rehearsal.terraform.planning import Path
from rehearsal.terraform.resource_type import Client

COMPUTE = "compute.googleapis.com"
NETWORK = "google_compute_network"
SUBNET = "google_compute_subnetwork"
ROUTER = "google_compute_router"

NETWORK_PATH = "projects/{project}/global/networks/{name}"
SUBNET_PATH = "projects/{project}/regions/{region}/subnetworks/{name}"
ROUTER_PATH = "projects/{project}/regions/{region}/routers/{name}"

# The types whose objects keep a network or a subnet in use.
_USERS = (SUBNET, ROUTER, "google_compute_firewall", "google_compute_global_address", "google_container_cluster")


def name_is_valid(change: Change) -> None:
    """RFC 1035: a lower-case letter, then letters, digits and dashes, 63 at most.

    https://cloud.google.com/compute/docs/naming-resources
    """
    name = str(change.values["name"])
    if not re.fullmatch(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?", name):
        raise ApiError(
            400,
            f"Invalid value for field 'resource.name': '{name}'. "
            "Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'",
            "invalid",
        )


def network_exists(change: Change) -> None:
    """What lies in a network needs it. https://cloud.google.com/compute/docs/reference/rest/v1/subnetworks/insert"""
    name = network_of(change.client, change.values)
    if change.get(NETWORK, name) is None:
        raise ApiError(404, f"The resource '{name}' was not found", "notFound")


def network_of(client: Client, values: Attributes) -> str:
    """The full name of the network that `values` refer to."""
    project = str(values.get("project") or client.settings.get("project"))
    return reference(values.get("network") or "default", NETWORK_PATH, client, project=project)


def network_is_custom(change: Change) -> None:
    """Subnets cannot be added to a legacy network; an auto mode network makes its own.

    https://cloud.google.com/vpc/docs/vpc#subnet-ranges
    """
    network = change.get(NETWORK, network_of(change.client, change.values)) or {}
    if network.get("auto_create_subnetworks") is not False and change.prior is None:
        region = change.values.get("region") or change.client.settings.get("region")
        if IPv4Network(str(change.values["ip_cidr_range"])).subnet_of(IPv4Network("10.128.0.0/9")):
            raise ApiError(
                400,
                f"IP range of the subnetwork conflicts with the one that the auto mode network made in {region}",
                "invalid",
            )


def mtu_is_valid(change: Change) -> None:
    """1300 to 8896 bytes. https://cloud.google.com/vpc/docs/mtu"""
    mtu = change.values.get("mtu")
    if isinstance(mtu, int) and mtu and not 1300 <= mtu <= 8896:
        raise ApiError(
            400, f"Invalid value for field 'resource.mtu': '{mtu}'. Must be between 1300 and 8896", "invalid"
        )


def network_is_unused(change: Change) -> None:
    """A network with something in it cannot be deleted.

    https://cloud.google.com/vpc/docs/create-modify-vpc-networks#deleting_a_network
    """
    for user in objects_in(change, change.name):
        raise ApiError(
            400,
            f"The network resource '{change.name}' is already being used by '{user.name}'",
            "resourceInUseByAnotherResource",
        )


def objects_in(change: Change, network: str) -> Iterator[Object]:
    """Everything that lies in a network."""
    for type_ in _USERS:
        for item in change.client.cloud.find(type_):
            if item.attributes.get("network") and network_of(change.client, item.attributes) == network:
                yield item


def ranges_of(subnet: Attributes) -> dict[str, IPv4Network]:
    """The ranges of a subnet by name; the primary one under "". Raises ApiError for what is not a range."""
    found = {"": _range(subnet.get("ip_cidr_range"))}
    for secondary in subnet.get("secondary_ip_range") or []:
        found[str(secondary["range_name"])] = _range(secondary["ip_cidr_range"])
    return found


def _range(text: object) -> IPv4Network:
    try:
        return IPv4Network(str(text))
    except ValueError as error:
        raise ApiError(400, f"Invalid value for field 'resource.ipCidrRange': '{text}'. {error}", "invalid") from error


def ranges_do_not_overlap(change: Change) -> None:
    """No two ranges of a network overlap, primary or secondary.

    https://cloud.google.com/vpc/docs/subnets#ipv4-ranges
    """
    mine = list(ranges_of(change.values).items())
    for at, (name, network) in enumerate(mine):
        for other_name, other in mine[at + 1 :]:
            if network.overlaps(other):
                raise ApiError(
                    400,
                    f"IP range {other} of {_words(other_name)} conflicts with IP range {network} of {_words(name)}",
                    "invalid",
                )
    network_name = network_of(change.client, change.values)
    for item in change.client.cloud.find(SUBNET):
        if item.name == change.name or network_of(change.client, item.attributes) != network_name:
            continue
        for other in ranges_of(item.attributes).values():
            for _, network in mine:
                if network.overlaps(other):
                    raise ApiError(
                        400,
                        f"Invalid IPCidrRange: {network} conflicts with existing subnetwork '{item.name}' ({other})",
                        "invalid",
                    )


def _words(range_name: str) -> str:
    return f"secondary range '{range_name}'" if range_name else "the subnetwork"


def ranges_are_valid(change: Change) -> None:
    """A subnet range has 4 addresses for Google and a prefix of /29 or shorter.

    https://cloud.google.com/vpc/docs/subnets#valid-ranges
    """
    for name, network in ranges_of(change.values).items():
        if network.prefixlen > 29 or network.prefixlen < 4:
            raise ApiError(
                400,
                f"Invalid IPCidrRange {network} of {_words(name)}: the prefix must be between /4 and /29",
                "invalid",
            )


def kept_ranges_are_unused(change: Change) -> None:
    """A range can neither shrink nor go while a cluster uses it.

    https://cloud.google.com/vpc/docs/create-modify-vpc-networks#expand-subnet
    """
    if change.prior is None:
        return
    before, after = ranges_of(change.prior), ranges_of(change.values)
    for user, used in clusters_on(change, change.name):
        for name in used:
            if name in before and before[name] != after.get(name):
                raise ApiError(
                    400,
                    f"Secondary range '{name}' of '{change.name}' is in use by '{user.name}' and cannot be changed",
                    "resourceInUseByAnotherResource",
                )


def clusters_on(change: Change, subnet: str) -> Iterator[tuple[Object, list[str]]]:
    """The clusters in a subnet, each with the secondary ranges that it uses."""
    for item in change.client.cloud.find("google_container_cluster"):
        own = str(item.attributes.get("project"))
        region = "-".join(str(item.attributes.get("location")).split("-")[:2])
        if (
            reference(item.attributes.get("subnetwork"), SUBNET_PATH, change.client, project=own, region=region)
            == subnet
        ):
            policy = (item.attributes.get("ip_allocation_policy") or [{}])[0]
            keys = ("cluster_secondary_range_name", "services_secondary_range_name")
            yield item, [str(policy[key]) for key in keys if policy.get(key)]


def subnet_is_unused(change: Change) -> None:
    """A subnet with a cluster in it cannot be deleted.

    https://cloud.google.com/vpc/docs/create-modify-vpc-networks#deleting_subnets
    """
    for user, _ in clusters_on(change, change.name):
        raise ApiError(
            400,
            f"The subnetwork resource '{change.name}' is already being used by '{user.name}'",
            "resourceInUseByAnotherResource",
        )


def router_exists(change: Change) -> None:
    """NAT is a part of a router. https://cloud.google.com/nat/docs/overview"""
    values = change.values
    region = str(values.get("region") or change.client.settings.get("region"))
    name = reference(values["router"], ROUTER_PATH, change.client, project=change.project, region=region)
    if change.get(ROUTER, name) is None:
        raise ApiError(404, f"The resource '{name}' was not found", "notFound")


def nat_is_alone(change: Change) -> None:
    """Only one NAT of a router may serve all subnets. https://cloud.google.com/nat/docs/nat-product-interactions"""
    parent = change.name.rsplit("/", 1)[0]
    for item in change.client.cloud.find("google_compute_router_nat", prefix=parent + "/"):
        whole = "ALL_SUBNETWORKS_ALL_IP_RANGES"
        both = {
            item.attributes["source_subnetwork_ip_ranges_to_nat"],
            change.values["source_subnetwork_ip_ranges_to_nat"],
        }
        if item.name != change.name and whole in both:
            raise ApiError(400, f"NAT '{item.name}' already serves all subnetworks of the router", "invalid")


def nat_goes_with_its_router(change: Change) -> None:
    """Deleting a router deletes its NAT. https://cloud.google.com/nat/docs/set-up-manage-network-address-translation"""
    for item in change.client.cloud.find("google_compute_router_nat", prefix=change.name + "/"):
        change.client.cloud.delete(item.kind, item.name)


def shrinks(prior: Attributes, planned: Attributes) -> list[Path]:
    """A primary range that grows is changed in place, any other change replaces the subnet (the provider's
    `isShrinkageIpCidr`).
    """
    try:
        old, new = IPv4Network(prior["ip_cidr_range"]), IPv4Network(planned["ip_cidr_range"])
    except (ValueError, TypeError):
        return [("ip_cidr_range",)]
    return [] if old.subnet_of(new) else [("ip_cidr_range",)]


def gateway(change: Change) -> Attributes:
    """The first address of a subnet is its gateway.

    https://cloud.google.com/vpc/docs/subnets#unusable-ip-addresses-in-every-subnet
    """
    return {"gateway_address": str(ranges_of(change.values)[""][1]), "purpose": "PRIVATE", "stack_type": "IPV4_ONLY"}


RESOURCE_TYPES = (
    GoogleResource(
        type_=NETWORK,
        path=NETWORK_PATH,
        word="Network",
        service=COMPUTE,
        checks=(name_is_valid, mtu_is_valid),
        removal=(network_is_unused,),
        computed=lambda _: {"mtu": 1460, "routing_mode": "REGIONAL"},
        state_only=("delete_default_routes_on_create",),
    ),
    GoogleResource(
        type_=SUBNET,
        path=SUBNET_PATH,
        word="Subnetwork",
        service=COMPUTE,
        checks=(
            name_is_valid,
            region_exists,
            network_exists,
            ranges_are_valid,
            network_is_custom,
            ranges_do_not_overlap,
            kept_ranges_are_unused,
        ),
        removal=(subnet_is_unused,),
        computed=gateway,
        state_only=("send_secondary_ip_range_if_empty",),
        replaced_by=shrinks,
    ),
    GoogleResource(
        type_=ROUTER,
        path=ROUTER_PATH,
        word="Router",
        service=COMPUTE,
        checks=(name_is_valid, network_exists),
        gone=nat_goes_with_its_router,
    ),
    GoogleResource(
        type_="google_compute_router_nat",
        path="projects/{project}/regions/{region}/routers/{router}/{name}",
        word="RouterNat",
        service=COMPUTE,
        checks=(name_is_valid, router_exists, nat_is_alone),
    ),
    GoogleResource(
        type_="google_compute_firewall",
        path="projects/{project}/global/firewalls/{name}",
        word="Firewall",
        service=COMPUTE,
        checks=(name_is_valid, network_exists),
        computed=lambda _: {"direction": "INGRESS"},
    ),
    GoogleResource(
        type_="google_compute_global_address",
        path="projects/{project}/global/addresses/{name}",
        word="GlobalAddress",
        service=COMPUTE,
        checks=(name_is_valid,),
        computed=lambda _: {"address": "10.255.0.0"},
    ),
    GoogleResource(
        type_=POLICY,
        path=POLICY_PATH,
        word="ResourcePolicy",
        service=COMPUTE,
        checks=(name_is_valid,),
        removal=(policy_is_unused,),
    ),
)
