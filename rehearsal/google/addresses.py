"""Do the nodes and pods of a new node pool fit into the ranges that are there?

https://cloud.google.com/kubernetes-engine/docs/concepts/alias-ips#cluster_sizing and .../how-to/flexible-pod-cidr
"""

from __future__ import annotations

from rehearsal.cloud import Attributes
from rehearsal.google.network import SUBNET, SUBNET_PATH, ranges_of
from rehearsal.google.resource import ApiError, Change, one, reference

CLUSTER = "google_container_cluster"
POOL = "google_container_node_pool"

# Google keeps four addresses of a primary range.
# https://cloud.google.com/vpc/docs/subnets#unusable-ip-addresses-in-every-subnet
_RESERVED = 4


def addresses_per_node(max_pods: int) -> int:
    """A node takes the smallest power of two that is at least twice its pods."""
    return 1 << (2 * max_pods - 1).bit_length()


def nodes_of(pool: Attributes) -> int:
    """The nodes a pool starts with, in all its zones; autoscaling adds to them later, as far as there is room."""
    zones = len(pool.get("node_locations") or [1])
    sizes = [pool.get("node_count"), pool.get("initial_node_count"), one(pool, "autoscaling").get("min_node_count")]
    return zones * max((size for size in sizes if isinstance(size, int)), default=0)


def subnet_name(change: Change, cluster: Attributes) -> str:
    region = "-".join(str(cluster.get("location")).split("-")[:2])
    project = str(cluster.get("project"))
    return reference(cluster.get("subnetwork"), SUBNET_PATH, change.client, project=project, region=region)


def pods_range_of(pool: Attributes, cluster: Attributes) -> str:
    """The secondary range that the pods of a pool take: its own or the cluster's."""
    own = one(pool, "network_config").get("pod_range")
    return str(own or one(cluster, "ip_allocation_policy").get("cluster_secondary_range_name") or "")


def pods_range_exists(change: Change) -> None:
    """A pool's own range for pods is a secondary range of the cluster's subnet.

    https://cloud.google.com/kubernetes-engine/docs/how-to/multi-pod-cidr
    """
    cluster = change.get(CLUSTER, change.name.rsplit("/nodePools/", 1)[0]) or {}
    given = one(change.values, "network_config").get("pod_range")
    subnet = change.get(SUBNET, subnet_name(change, cluster)) or {}
    if isinstance(given, str) and given and given not in ranges_of(subnet):
        raise ApiError(
            400,
            f"Pod secondary range '{given}' does not exist in subnetwork '{subnet_name(change, cluster)}'.",
            "badRequest",
        )


def addresses_are_left(change: Change) -> None:
    """The nodes of all pools have an address each in the subnet, and their pods a block each in the pods range."""
    cloud = change.client.cloud
    cluster = change.get(CLUSTER, change.name.rsplit("/nodePools/", 1)[0]) or {}
    subnet_full = subnet_name(change, cluster)
    ranges = ranges_of(cloud.get(SUBNET, subnet_full) or {})
    pods_range = pods_range_of(change.values, cluster)
    nodes = taken = 0
    for name, pool in {**{item.name: item.attributes for item in cloud.find(POOL)}, change.name: change.values}.items():
        owner = cloud.get(CLUSTER, name.rsplit("/nodePools/", 1)[0]) or {}
        if subnet_name(change, owner) != subnet_full:
            continue
        nodes += nodes_of(pool)
        if pods_range_of(pool, owner) == pods_range:
            given = pool.get("max_pods_per_node")
            taken += nodes_of(pool) * addresses_per_node(given if isinstance(given, int) else 110)
    room = ranges[""].num_addresses - _RESERVED
    if nodes > room:
        raise _exhausted(subnet_full, f"{nodes} nodes, room for {room}")
    pods = ranges.get(pods_range)
    if pods is not None and taken > pods.num_addresses:
        raise _exhausted(f"{subnet_full}-{pods_range}", f"pods need {taken} addresses, {pods} has {pods.num_addresses}")


def _exhausted(name: str, words: str) -> ApiError:
    """https://cloud.google.com/kubernetes-engine/docs/troubleshooting/troubleshoot-ip-utilization"""
    return ApiError(400, f"IP_SPACE_EXHAUSTED: IP space of '{name}' is exhausted ({words}).", "ipSpaceExhausted")
