"""Do the nodes and pods of a new node pool fit into the ranges that are there?

https://cloud.google.com/kubernetes-engine/docs/concepts/alias-ips#cluster_sizing and .../how-to/flexible-pod-cidr
"""

from __future__ import annotations

from rehearsal.cloud import Attributes
from rehearsal.google.errors import ApiError, require
from rehearsal.google.network import CLUSTER, IN_SUBNET, SUBNET, ranges_of
from rehearsal.google.resource import Change
from rehearsal.terraform.values import value_at

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
    sizes = [value_at(pool, path) for path in ("node_count", "initial_node_count", "autoscaling.min_node_count")]
    return zones * max((size for size in sizes if isinstance(size, int)), default=0)


def cluster_of(pool_name: str) -> str:
    """The full name of a node pool's cluster."""
    return pool_name.rsplit("/nodePools/", 1)[0]


def pods_range_of(pool: Attributes, cluster: Attributes) -> str:
    """The secondary range that the pods of a pool take: its own or the cluster's."""
    own = value_at(pool, "network_config.pod_range")
    return str(own or value_at(cluster, "ip_allocation_policy.cluster_secondary_range_name") or "")


def pods_range_exists(change: Change) -> None:
    """A pool's own range for pods is a secondary range of the cluster's subnet.

    https://cloud.google.com/kubernetes-engine/docs/how-to/multi-pod-cidr
    """
    given = value_at(change.values, "network_config.pod_range")
    subnet = IN_SUBNET.target(change.client, change.get(CLUSTER, cluster_of(change.name)) or {})
    exists = not given or given in ranges_of(change.get(SUBNET, subnet) or {})
    require(exists, f"Pod secondary range '{given}' does not exist in subnetwork '{subnet}'.")


def addresses_are_left(change: Change) -> None:
    """The nodes of all pools have an address each in the subnet, and their pods a block each in the pods range.

    https://cloud.google.com/kubernetes-engine/docs/troubleshooting/troubleshoot-ip-utilization
    """
    cloud = change.client.cloud
    cluster = change.get(CLUSTER, cluster_of(change.name)) or {}
    subnet = IN_SUBNET.target(change.client, cluster)
    ranges = ranges_of(cloud.get(SUBNET, subnet) or {})
    pods_range = pods_range_of(change.values, cluster)
    nodes = taken = 0
    for name, pool in {**{item.name: item.attributes for item in cloud.find(POOL)}, change.name: change.values}.items():
        owner = cloud.get(CLUSTER, cluster_of(name)) or {}
        if IN_SUBNET.target(change.client, owner) != subnet:
            continue
        nodes += nodes_of(pool)
        if pods_range_of(pool, owner) == pods_range:
            taken += nodes_of(pool) * addresses_per_node(pool.get("max_pods_per_node") or 110)
    room = ranges[""].num_addresses - _RESERVED
    _require_room(nodes <= room, subnet, f"{nodes} nodes, room for {room}")
    if pods := ranges.get(pods_range):
        words = f"pods need {taken} addresses, {pods} has {pods.num_addresses}"
        _require_room(taken <= pods.num_addresses, f"{subnet}-{pods_range}", words)


def _require_room(enough: bool, name: str, words: str) -> None:
    message = f"IP_SPACE_EXHAUSTED: IP space of '{name}' is exhausted ({words})."
    require(enough, message, lambda text: ApiError(400, text, "ipSpaceExhausted"))
