"""GKE clusters: references, ranges, maintenance; what a delete needs; what the server decides."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from ipaddress import IPv4Network

from rehearsal.cloud import Attributes
from rehearsal.google.iam import ACCOUNT
from rehearsal.google.locations import region_exists, version_exists, zones_exist
from rehearsal.google.network import NETWORK, SUBNET, SUBNET_PATH, network_of, ranges_of
from rehearsal.google.resource import ApiError, Change, GoogleResource, may, one, reference
from rehearsal.terraform.resource_type import Client, Refusal

GKE = "container.googleapis.com"
CLUSTER = "google_container_cluster"
POOL = "google_container_node_pool"

CLUSTER_PATH = "projects/{project}/locations/{location}/clusters/{name}"

# What this version of GKE would be; any other that is asked for is taken as it is.
VERSION = "1.34.1-gke.1829001"

# https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/resources/container_cluster#enable_components
_MONITORED = (
    *("SYSTEM_COMPONENTS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER", "STORAGE", "HPA", "POD", "DAEMONSET"),
    *("DEPLOYMENT", "STATEFULSET", "KUBELET", "CADVISOR", "DCGM", "JOBSET"),
)

# How long an exclusion of this scope may last.
# https://cloud.google.com/kubernetes-engine/docs/concepts/maintenance-windows-and-exclusions
_EXCLUSION_DAYS = {"NO_UPGRADES": 30, "NO_MINOR_UPGRADES": 180, "NO_MINOR_OR_NODE_UPGRADES": 180}


def name_is_valid(change: Change) -> None:
    """40 lower-case letters, digits and dashes.

    https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters#Cluster
    """
    name = str(change.values["name"])
    if not re.fullmatch(r"[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?", name):
        raise ApiError(
            400,
            f"Invalid name '{name}': at most 40 lower-case letters, digits and dashes, starting with a letter.",
            "badRequest",
        )


def network_and_subnet_exist(change: Change) -> None:
    """https://cloud.google.com/kubernetes-engine/docs/how-to/alias-ips#limitations"""
    network = network_of(change.client, change.values)
    if change.get(NETWORK, network) is None:
        raise ApiError(404, f"Not found: network {network}.", "notFound")
    subnet = change.get(SUBNET, subnet_of(change))
    if subnet is None:
        raise ApiError(404, f"Not found: subnetwork {subnet_of(change)}.", "notFound")
    if network_of(change.client, subnet) != network:
        raise ApiError(400, f"Subnetwork {subnet_of(change)} does not belong to network {network}.", "badRequest")


def subnet_of(change: Change) -> str:
    """The full name of a cluster's subnet."""
    region = region_of(change.values)
    return reference(change.values.get("subnetwork"), SUBNET_PATH, change.client, project=change.project, region=region)


def region_of(values: Attributes) -> str:
    """us-east5 for us-east5 and for us-east5-b."""
    return "-".join(str(values.get("location") or "").split("-")[:2])


def secondary_ranges_exist(change: Change) -> None:
    """Pods and services take named secondary ranges of the subnet; services do not share theirs.

    https://cloud.google.com/kubernetes-engine/docs/how-to/alias-ips#secondary_ranges
    """
    policy = one(change.values, "ip_allocation_policy")
    ranges = ranges_of(change.get(SUBNET, subnet_of(change)) or {})
    for key, word in (("cluster_secondary_range_name", "Pod"), ("services_secondary_range_name", "Services")):
        given = policy.get(key)
        if given and given not in ranges:
            raise ApiError(
                400,
                f"{word} secondary range '{given}' does not exist in subnetwork '{subnet_of(change)}'.",
                "badRequest",
            )
    for item in change.client.cloud.find(CLUSTER):
        theirs = one(item.attributes, "ip_allocation_policy").get("services_secondary_range_name")
        same_subnet = item.attributes.get("subnetwork") == change.values.get("subnetwork")
        if (
            item.name != change.name
            and same_subnet
            and theirs
            and theirs == policy.get("services_secondary_range_name")
        ):
            raise ApiError(400, f"Services secondary range '{theirs}' is in use by '{item.name}'.", "badRequest")


def control_plane_range_is_free(change: Change) -> None:
    """A control plane range is a /28 outside of the subnet's ranges.

    https://cloud.google.com/kubernetes-engine/docs/how-to/legacy/network-isolation
    """
    given = one(change.values, "private_cluster_config").get("master_ipv4_cidr_block")
    if not given:
        return
    block = IPv4Network(str(given))
    if block.prefixlen != 28:
        raise ApiError(400, f"Invalid master_ipv4_cidr_block {block}: it must be a /28.", "badRequest")
    for network in ranges_of(change.get(SUBNET, subnet_of(change)) or {}).values():
        if network.overlaps(block):
            raise ApiError(
                400, f"The given master_ipv4_cidr {block} overlaps with an existing network {network}.", "badRequest"
            )


def nodes_account_exists(change: Change) -> None:
    """Nodes run as an account of the project that exists.

    https://cloud.google.com/kubernetes-engine/docs/how-to/service-accounts
    """
    account = str(one(change.values, "node_config").get("service_account") or "")
    if not account or account == "default":
        return
    project = change.project
    if change.get(ACCOUNT, f"projects/{project}/serviceAccounts/{account}") is None:
        raise ApiError(400, f'Service account "{account}" does not exist.', "badRequest")


def workload_pool_is_the_projects(change: Change) -> None:
    """A cluster takes part in its own project's pool.

    https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity
    """
    given = one(change.values, "workload_identity_config").get("workload_pool")
    if given and given != f"{change.project}.svc.id.goog":
        raise ApiError(400, f"Workload pool '{given}' is not of the form {change.project}.svc.id.goog.", "badRequest")


def zones_are_in_the_region(change: Change) -> None:
    """https://cloud.google.com/kubernetes-engine/docs/concepts/types-of-clusters#regional_clusters"""
    region = region_of(change.values)
    for zone in change.values.get("node_locations") or []:
        if not re.fullmatch(rf"{re.escape(region)}-[a-z0-9]+", str(zone)):
            raise ApiError(
                400, f"Invalid value for node_locations: zone '{zone}' is not in region '{region}'.", "badRequest"
            )


def default_pool_can_be_made(change: Change) -> None:
    """A cluster is made with a first node pool, also when that is removed afterwards.

    https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/resources/container_cluster#remove_default_node_pool
    """
    first = change.values.get("initial_node_count") or 0
    if first < 1 and not change.values.get("node_pool") and not change.values.get("enable_autopilot"):
        raise ApiError(400, "Cluster.initial_node_count must be greater than zero.", "badRequest")


def components_are_known(change: Change) -> None:
    """The provider knows the components of monitoring by name."""
    for component in one(change.values, "monitoring_config").get("enable_components") or []:
        if component not in _MONITORED:
            raise Refusal(
                f"expected monitoring_config.0.enable_components to be one of {list(_MONITORED)}, got {component}"
            )


def exclusions_are_possible(change: Change) -> None:
    """An exclusion ends after it starts, lasts as long as its scope allows, and needs a release channel unless it
    stops all upgrades.
    """
    channel = one(change.values, "release_channel").get("channel") or "REGULAR"
    for exclusion in one(change.values, "maintenance_policy").get("maintenance_exclusion") or []:
        name = exclusion["exclusion_name"]
        scope = one(exclusion, "exclusion_options").get("scope") or "NO_UPGRADES"
        start, end = (
            datetime.fromisoformat(str(exclusion[key]).replace("Z", "+00:00")) for key in ("start_time", "end_time")
        )
        if end <= start:
            raise ApiError(400, f"Maintenance exclusion '{name}' must end after it starts.", "badRequest")
        if (end - start).days > _EXCLUSION_DAYS[scope]:
            raise ApiError(
                400,
                f"Maintenance exclusion '{name}' of scope {scope} is longer than {_EXCLUSION_DAYS[scope]} days.",
                "badRequest",
            )
        if scope != "NO_UPGRADES" and channel == "UNSPECIFIED":
            raise ApiError(400, f"Maintenance exclusion scope {scope} requires a release channel.", "badRequest")


def pools_move_with_their_cluster(change: Change) -> None:
    """Changing a cluster's locations changes those of all its node pools.

    https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/ClusterUpdate (desiredLocations)
    """
    before, after = (change.prior or {}).get("node_locations"), change.values.get("node_locations")
    if not before or not after or sorted(before) == sorted(after):
        return
    for item in change.client.cloud.find(POOL, prefix=change.name + "/"):
        change.client.cloud.put(POOL, item.name, item.attributes | {"node_locations": after})


def cluster_is_unprotected(change: Change) -> None:
    """The provider's own protection, true unless the state says false.
    .../docs/resources/container_cluster#deletion_protection
    """
    if (change.prior or {}).get("deletion_protection") is not False:
        raise Refusal(
            "Cannot destroy cluster because deletion_protection is set to true."
            " Set it to false to proceed with cluster deletion."
        )


def cluster_takes_all_with_it(change: Change) -> None:
    """Node pools and everything inside a cluster go with it."""
    cloud = change.client.cloud
    for item in [*cloud.find(POOL, prefix=change.name + "/"), *cloud.find("kubernetes", prefix=change.name + "|")]:
        cloud.delete(item.kind, item.name)
    for item in cloud.find("helm_release", prefix=change.name + "|"):
        cloud.delete(item.kind, item.name)


def dns_endpoint(name: str, region: str) -> str:
    """https://cloud.google.com/kubernetes-engine/docs/concepts/network-isolation#dns-based_endpoint"""
    return f"gke-{hashlib.sha256(name.encode()).hexdigest()[:40]}.{region}.gke.goog"


def cluster_values(change: Change) -> Attributes:
    """The server's part of a cluster."""
    policy = one(change.values, "ip_allocation_policy")
    ranges = ranges_of(change.get(SUBNET, subnet_of(change)) or {})
    pods = str(ranges.get(str(policy.get("cluster_secondary_range_name")), "10.8.0.0/14"))
    services = str(ranges.get(str(policy.get("services_secondary_range_name")), "10.12.0.0/20"))
    version = change.values.get("min_master_version") or VERSION
    region = region_of(change.values)
    return {
        "id": change.name,
        "self_link": f"https://container.googleapis.com/v1/{change.name}",
        "endpoint": "10.0.0.2",
        "master_version": version,
        "node_version": version,
        "cluster_ipv4_cidr": pods,
        "services_ipv4_cidr": services,
        "default_max_pods_per_node": 110,
        "networking_mode": "VPC_NATIVE",
        "node_locations": [f"{region}-{letter}" for letter in "abc"],
        "label_fingerprint": hashlib.sha256(change.name.encode()).hexdigest()[:8],
        "ip_allocation_policy": [{"cluster_ipv4_cidr_block": pods, "services_ipv4_cidr_block": services}],
        "control_plane_endpoints_config": [{"dns_endpoint_config": [{"endpoint": dns_endpoint(change.name, region)}]}],
    }


class Cluster:
    """data.google_container_cluster"""

    type_ = CLUSTER

    def read(self, client: Client, config: Attributes) -> Attributes:
        project = config.get("project") or client.settings.get("project")
        location = config.get("location") or client.settings.get("region")
        name = CLUSTER_PATH.format(project=project, location=location, name=config["name"])
        try:
            may(client, "data.google_container_cluster", "read", config | {"project": project, "location": location})
        except ApiError as error:
            raise Refusal(f"Error reading cluster: {error.text}") from error
        found = client.cloud.get(CLUSTER, name)
        if found is None:
            raise Refusal(f"{name} not found")
        return found | {"id": name, "project": project, "location": location}


RESOURCE_TYPES = (
    GoogleResource(
        type_=CLUSTER,
        path=CLUSTER_PATH,
        word="cluster",
        service=GKE,
        exists="Already exists: {name}.",
        checks=(
            name_is_valid,
            region_exists,
            zones_are_in_the_region,
            zones_exist,
            version_exists,
            nodes_account_exists,
            network_and_subnet_exist,
            secondary_ranges_exist,
            control_plane_range_is_free,
            workload_pool_is_the_projects,
            default_pool_can_be_made,
            components_are_known,
            exclusions_are_possible,
            pools_move_with_their_cluster,
        ),
        removal=(cluster_is_unprotected,),
        computed=cluster_values,
        state_only=("deletion_protection", "remove_default_node_pool", "min_master_version"),
        labels="resource_labels",
        gone=cluster_takes_all_with_it,
    ),
)
DATA_SOURCES = (Cluster(),)
