"""GKE clusters: references, ranges, maintenance; what a delete needs; what the server decides."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Network

from rehearsal.cloud import Attributes
from rehearsal.google.errors import not_found, require
from rehearsal.google.iam import ACCOUNT, ACCOUNT_BY_EMAIL
from rehearsal.google.locations import region_exists, version_exists, zones_exist
from rehearsal.google.names import region_of
from rehearsal.google.network import CLUSTER, IN_NETWORK, IN_SUBNET, SUBNET, ranges_of
from rehearsal.google.resource import Change, GoogleDataSource, GoogleResource, matches
from rehearsal.terraform.resource_type import Refusal
from rehearsal.terraform.values import block_at, value_at
from vocabulary.resource_types import facts_of

POOL = "google_container_node_pool"

# What this version of GKE would be; any other that is asked for is taken as it is.
VERSION = "1.34.1-gke.1829001"

# https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/resources/container_cluster#enable_components
_MONITORED = (
    *("SYSTEM_COMPONENTS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER", "STORAGE", "HPA", "POD", "DAEMONSET"),
    *("DEPLOYMENT", "STATEFULSET", "KUBELET", "CADVISOR", "DCGM", "JOBSET"),
)

# How many months a minor version is supported in a channel. https://cloud.google.com/kubernetes-engine/docs/release-schedule
_SUPPORTED_MONTHS = {"EXTENDED": 24}
_SUPPORTED_MONTHS_ELSEWHERE = 14

# 40 lower-case letters, digits and dashes.
# https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters#Cluster
name_is_valid = matches(
    "name",
    r"[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?",
    "Invalid name '{}': at most 40 lower-case letters, digits and dashes, starting with a letter.",
)


def subnet_is_in_network(change: Change) -> None:
    """https://cloud.google.com/kubernetes-engine/docs/how-to/alias-ips#limitations"""
    network, name = IN_NETWORK.target(change.client, change.values), subnet_of(change)
    same = IN_NETWORK.target(change.client, change.get(SUBNET, name) or {}) == network
    require(same, f"Subnetwork {name} does not belong to network {network}.")


def subnet_of(change: Change) -> str:
    """The full name of a cluster's subnet."""
    return IN_SUBNET.target(change.client, change.values)


def secondary_ranges_exist(change: Change) -> None:
    """Pods and services take named secondary ranges of the subnet; services do not share theirs.

    https://cloud.google.com/kubernetes-engine/docs/how-to/alias-ips#secondary_ranges
    """
    ranges = ranges_of(change.get(SUBNET, subnet_of(change)) or {})
    services = "ip_allocation_policy.services_secondary_range_name"
    for path, word in (("ip_allocation_policy.cluster_secondary_range_name", "Pod"), (services, "Services")):
        name = value_at(change.values, path)
        exists = not name or name in ranges
        require(exists, f"{word} secondary range '{name}' does not exist in subnetwork '{subnet_of(change)}'.")
    own = value_at(change.values, services)
    for cluster in change.client.cloud.find(CLUSTER):
        same_subnet = cluster.attributes.get("subnetwork") == change.values.get("subnetwork")
        shared = own and same_subnet and cluster.name != change.name and value_at(cluster.attributes, services) == own
        require(not shared, f"Services secondary range '{own}' is in use by '{cluster.name}'.")


def control_plane_range_is_free(change: Change) -> None:
    """A control plane range is a /28 outside of the subnet's ranges.

    https://cloud.google.com/kubernetes-engine/docs/how-to/legacy/network-isolation
    """
    given = value_at(change.values, "private_cluster_config.master_ipv4_cidr_block")
    if not given:
        return
    block = IPv4Network(str(given))
    require(block.prefixlen == 28, f"Invalid master_ipv4_cidr_block {block}: it must be a /28.")
    for network in ranges_of(change.get(SUBNET, subnet_of(change)) or {}).values():
        overlaps = f"The given master_ipv4_cidr {block} overlaps with an existing network {network}."
        require(not network.overlaps(block), overlaps)


def nodes_account_exists(change: Change) -> None:
    """Nodes run as an account of the project that exists.

    https://cloud.google.com/kubernetes-engine/docs/how-to/service-accounts
    """
    own = "cluster_autoscaling.auto_provisioning_defaults" if is_autopilot(change.values) else "node_config"
    email = str(value_at(change.values, f"{own}.service_account") or "default")
    exists = change.get(ACCOUNT, ACCOUNT_BY_EMAIL.format(project=change.project, email=email)) is not None
    require(exists or email == "default", f'Service account "{email}" does not exist.')


def is_autopilot(cluster: Attributes | None) -> bool:
    """Whether GKE makes the nodes of this cluster."""
    return bool((cluster or {}).get("enable_autopilot"))


# ConflictsWith enable_autopilot in google 6.50.0, services/container/resource_container_cluster.go, without those that
# the provider itself fills in before it plans.
_NOT_ON_AUTOPILOT = (
    *("addons_config.dns_cache_config", "addons_config.network_policy_config", "addons_config.stateful_ha_config"),
    *("cluster_autoscaling.enabled", "cluster_autoscaling.resource_limits", "default_max_pods_per_node"),
    *("network_policy", "node_pool", "remove_default_node_pool"),
)


def autopilot_decides(change: Change) -> None:
    """The provider refuses arguments of what Autopilot decides, and GKE the defaults of node pools.

    GKE's words: the provider's TestAccContainerCluster_withAutopilot_withNodePoolDefaults and _errorAutopilotLocation.
    """
    if not is_autopilot(change.values) or change.prior is not None:
        return
    for path in _NOT_ON_AUTOPILOT:
        if value_at(change.values, path):
            raise Refusal(f'Conflicting configuration arguments: "{path}": conflicts with enable_autopilot')
    pool_defaults = value_at(change.values, "node_pool_defaults.node_config_defaults")
    not_allowed = "Setting node_pool_defaults.node_config_defaults is not allowed on GKE Autopilot clusters."
    require(not pool_defaults, not_allowed)
    region = re.fullmatch("[a-z]+-[a-z]+[0-9]+", str(change.values.get("location")))
    require(region, "Autopilot clusters must be regional clusters.")


def workload_pool_is_the_projects(change: Change) -> None:
    """A cluster takes part in its own project's pool.

    https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity
    """
    own = f"{change.project}.svc.id.goog"
    given = value_at(change.values, "workload_identity_config.workload_pool") or own
    require(given == own, f"Workload pool '{given}' is not of the form {own}.")


def zones_are_in_the_region(change: Change) -> None:
    """https://cloud.google.com/kubernetes-engine/docs/concepts/types-of-clusters#regional_clusters"""
    region = region_of(change.values.get("location"))
    for zone in change.values.get("node_locations") or []:
        inside = re.fullmatch(rf"{re.escape(region)}-[a-z0-9]+", str(zone))
        require(inside, f"Invalid value for node_locations: zone '{zone}' is not in region '{region}'.")


def first_pool_has_nodes(change: Change) -> None:
    """A cluster is created with a first node pool, also when that is removed afterwards.

    https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/resources/container_cluster#remove_default_node_pool
    """
    nodes = change.values.get("initial_node_count") or 0
    other = change.values.get("node_pool") or change.values.get("enable_autopilot")
    require(nodes >= 1 or other, "Cluster.initial_node_count must be greater than zero.")


def components_are_known(change: Change) -> None:
    """The provider knows the components of monitoring by name."""
    path = "monitoring_config.enable_components"
    for component in value_at(change.values, path) or []:
        if component not in _MONITORED:
            where = path.replace(".", ".0.")
            raise Refusal(f"expected {where} to be one of {list(_MONITORED)}, got {component}")


def exclusions_are_possible(change: Change) -> None:
    """An exclusion ends after it starts. Unless it stops all upgrades, it needs a release channel, and ends before the
    support of the minor version, of which the fake assumes that it has just begun.

    https://cloud.google.com/kubernetes-engine/docs/concepts/maintenance-windows-and-exclusions
    """
    channel = value_at(change.values, "release_channel.channel") or "REGULAR"
    for exclusion in value_at(change.values, "maintenance_policy.maintenance_exclusion") or []:
        name = f"Maintenance exclusion '{exclusion['exclusion_name']}'"
        scope = value_at(exclusion, "exclusion_options.scope") or "NO_UPGRADES"
        start, end = (
            datetime.fromisoformat(str(exclusion[key]).replace("Z", "+00:00")) for key in ("start_time", "end_time")
        )
        require(end > start, f"{name} must end after it starts.")
        if scope == "NO_UPGRADES":
            continue
        require(channel != "UNSPECIFIED", f"Maintenance exclusion scope {scope} requires a release channel.")
        months = _SUPPORTED_MONTHS.get(channel, _SUPPORTED_MONTHS_ELSEWHERE)
        end_of_life = datetime.now(timezone.utc) + timedelta(days=31 * months)
        require(end <= end_of_life, f"{name}: endTime needs to be before the minor version's end of life.")


def pools_move_with_their_cluster(change: Change) -> None:
    """Changing a cluster's locations changes those of all its node pools.

    https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/ClusterUpdate (desiredLocations)
    """
    before, after = (change.prior or {}).get("node_locations"), change.values.get("node_locations")
    if before and after and sorted(before) != sorted(after):
        for pool in change.client.cloud.find(POOL, prefix=change.name + "/"):
            change.client.cloud.put(POOL, pool.name, pool.attributes | {"node_locations": after})


def cluster_is_unprotected(change: Change) -> None:
    """The provider's own protection, true unless the state says false.
    .../docs/resources/container_cluster#deletion_protection
    """
    if (change.prior or {}).get("deletion_protection") is not False:
        raise Refusal(
            "Cannot destroy cluster because deletion_protection is set to true."
            " Set it to false to proceed with cluster deletion."
        )


def delete_contents(change: Change) -> None:
    """Node pools and everything inside a cluster are deleted with it."""
    cloud = change.client.cloud
    for type_, separator in ((POOL, "/"), ("kubernetes", "|"), ("helm_release", "|")):
        for item in cloud.find(type_, prefix=change.name + separator):
            cloud.delete(type_, item.name)


def dns_endpoint(name: str, region: str) -> str:
    """https://cloud.google.com/kubernetes-engine/docs/concepts/network-isolation#dns-based_endpoint"""
    return f"gke-{hashlib.sha256(name.encode()).hexdigest()[:40]}.{region}.gke.goog"


# https://cloud.google.com/kubernetes-engine/docs/resources/autopilot-standard-feature-comparison
_AUTOPILOT_VALUES: Attributes = {
    "datapath_provider": "ADVANCED_DATAPATH",
    "default_max_pods_per_node": 32,
    "cluster_autoscaling": [{"enabled": True, "autoscaling_profile": "OPTIMIZE_UTILIZATION"}],
}


def cluster_values(change: Change) -> Attributes:
    """The server's part of a cluster."""
    policy = block_at(change.values, "ip_allocation_policy")
    ranges = ranges_of(change.get(SUBNET, subnet_of(change)) or {})
    pods = str(ranges.get(str(policy.get("cluster_secondary_range_name")), "10.8.0.0/14"))
    services = str(ranges.get(str(policy.get("services_secondary_range_name")), "10.12.0.0/20"))
    version = change.values.get("min_master_version") or VERSION
    region = region_of(change.values.get("location"))
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
        **(_AUTOPILOT_VALUES if is_autopilot(change.values) else {}),
    }


def cluster_as_stored(_: Change, sent: Attributes) -> Attributes:
    """Of a cluster without IP endpoints GKE may say either, and the provider reads it into an argument of its own."""
    if value_at(sent, "control_plane_endpoints_config.ip_endpoints_config.enabled") is not False:
        return sent
    private = block_at(sent, "private_cluster_config") | {"enable_private_endpoint": True}
    return {**sent, "private_cluster_config": [private]}


RESOURCE_TYPES = (
    GoogleResource(
        type_=CLUSTER,
        checks=(
            name_is_valid,
            region_exists,
            zones_are_in_the_region,
            zones_exist,
            version_exists,
            nodes_account_exists,
            replace(IN_NETWORK, missing=lambda name: not_found(f"Not found: network {name}.")),
            replace(IN_SUBNET, missing=lambda name: not_found(f"Not found: subnetwork {name}.")),
            subnet_is_in_network,
            secondary_ranges_exist,
            control_plane_range_is_free,
            workload_pool_is_the_projects,
            autopilot_decides,
            first_pool_has_nodes,
            components_are_known,
            exclusions_are_possible,
            pools_move_with_their_cluster,
        ),
        removal=(cluster_is_unprotected,),
        computed=cluster_values,
        stored=cluster_as_stored,
        known=lambda _, planned: {"enable_intranode_visibility": True} if is_autopilot(planned) else {},
        state_only=("deletion_protection", "remove_default_node_pool", "min_master_version"),
        labels="resource_labels",
        deleted=delete_contents,
    ),
)
DATA_SOURCES = (
    GoogleDataSource(type_=CLUSTER, stored_as=CLUSTER, template=facts_of(CLUSTER).name, noun="Error reading cluster"),
)
