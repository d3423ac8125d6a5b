"""GKE node pools: their cluster, size, disks, identity; TPU pools and addresses have rules of their own."""

from __future__ import annotations

from rehearsal.cloud import Attributes
from rehearsal.google.addresses import addresses_are_left, cluster_of, pods_range_exists
from rehearsal.google.errors import not_found, require
from rehearsal.google.gke import (
    POOL,
    VERSION,
    is_autopilot,
    name_is_valid,
    nodes_account_exists,
    zones_are_in_the_region,
)
from rehearsal.google.locations import zones_exist
from rehearsal.google.network import CLUSTER
from rehearsal.google.network import name_is_valid as compute_name_is_valid
from rehearsal.google.resource import Change, GoogleResource, unused
from rehearsal.google.tpu import PLACED_BY, POLICY, SHAPES, is_tpu, machine_type_stays, slice_is_whole
from rehearsal.terraform.values import block_at, value_at
from vocabulary.keys import TPU

# Boot disks of machine families that take hyperdisk only.
# https://cloud.google.com/compute/docs/disks/hyperdisks#machine-type-support
_HYPERDISK_ONLY = ("n4-", "n4d-", "c4-", "c4a-", "c4d-", "x4-", "m4-")
# ... and that take none of it as a boot disk.
_PERSISTENT_ONLY = ("n1-", "e2-", "f1-", "g1-", "n2-", "n2d-", "t2d-", "c2-", "c2d-")


def cluster_exists(change: Change) -> None:
    """https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools/create"""
    name = cluster_of(change.name)
    cluster = change.get(CLUSTER, name)
    require(cluster is not None, f"Not found: {name}.", not_found)
    require(not is_autopilot(cluster), "Autopilot node pools cannot be accessed or modified.")


def identity_needs_the_cluster(change: Change) -> None:
    """GKE_METADATA on nodes needs Workload Identity on the cluster.

    https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity#option_2_node_pool_modification
    """
    mode = value_at(change.values, "node_config.workload_metadata_config.mode")
    pool = value_at(change.get(CLUSTER, cluster_of(change.name)), "workload_identity_config.workload_pool")
    message = "Workload metadata mode GKE_METADATA requires Workload Identity on the cluster."
    require(mode != "GKE_METADATA" or pool, message)


def size_is_given_once(change: Change) -> None:
    """An autoscaled pool has limits, another a size, and the limits are a range.

    https://cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler#minimum_and_maximum_node_pool_size
    """
    scaling = block_at(change.values, "autoscaling")
    if not scaling:
        return
    twice = isinstance(change.values.get("node_count"), int) and change.prior is None
    require(not twice, "node_count cannot be set on a node pool with autoscaling.")
    low = scaling.get("min_node_count") or scaling.get("total_min_node_count") or 0
    high = scaling.get("max_node_count") or scaling.get("total_max_node_count") or 0
    require(high >= 1 and low <= high, f"Invalid autoscaling limits: minimum {low}, maximum {high}.")


def pods_per_node_are_possible(change: Change) -> None:
    """8 to 256. https://cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr"""
    pods = change.values.get("max_pods_per_node") or 110
    require(8 <= pods <= 256, f"max_pods_per_node {pods} is not between 8 and 256.")


def boot_disk_fits(change: Change) -> None:
    """Newer machine families boot from hyperdisk only, older ones never; TPU machines have a list each."""
    machine = str(value_at(change.values, "node_config.machine_type") or "e2-medium")
    disk = str(value_at(change.values, "node_config.disk_type") or "")
    shape = SHAPES.get(machine)
    if shape is not None:
        fits = disk in shape.boot_disks
    else:
        fits = not machine.startswith(_PERSISTENT_ONLY if disk.startswith("hyperdisk") else _HYPERDISK_ONLY)
    require(fits or not disk, f"{disk} cannot be used as a boot disk with machine type {machine}.")


def pool_values(change: Change) -> Attributes:
    """The server's part of a node pool; TPU hosts get their taint from GKE."""
    cluster = change.get(CLUSTER, cluster_of(change.name)) or {}
    machine = str(value_at(change.values, "node_config.machine_type") or "")
    taints = [{"key": TPU, "value": "present", "effect": "NO_SCHEDULE"}] if is_tpu(machine) else []
    return {
        "node_count": change.values.get("initial_node_count") or 0,
        "initial_node_count": change.values.get("node_count"),
        "node_locations": cluster.get("node_locations"),
        "version": cluster.get("node_version") or VERSION,
        "max_pods_per_node": 110,
        "node_config": [
            {
                "machine_type": "e2-medium",
                "disk_size_gb": 100,
                "disk_type": "pd-balanced",
                "image_type": "COS_CONTAINERD",
                "service_account": "default",
                "effective_taints": taints,
                "logging_variant": "DEFAULT",
                "local_ssd_encryption_mode": "",
            }
        ],
    }


# Dynamic Workload Scheduler takes machines back after seven days, if not earlier.
# https://cloud.google.com/kubernetes-engine/docs/concepts/dws
_LONGEST_RUN = "604800s"

# Google gives nodes labels of its own, and a read returns them among ours. Which ones depends on what a pool uses:
# terraform-google-modules/terraform-google-kubernetes-engine issue 252 has this one. cluster-toolkit ignores all.
GOOGLES_LABELS = {"sandbox.gke.io/runtime": "gvisor"}


def pool_as_stored(_: Change, sent: Attributes) -> Attributes:
    """With what GKE adds to the configuration of the nodes."""
    config = dict(block_at(sent, "node_config"))
    config["labels"] = {**(config.get("labels") or {}), **GOOGLES_LABELS}
    if config.get("flex_start") and not config.get("max_run_duration"):
        config["max_run_duration"] = _LONGEST_RUN
    return {**sent, "node_config": [config]}


RESOURCE_TYPES = (
    GoogleResource(
        type_=POLICY,
        checks=(compute_name_is_valid,),
        # https://cloud.google.com/compute/docs/instances/use-compact-placement-policies
        removal=(unused("resource policy", PLACED_BY, POOL),),
    ),
    GoogleResource(
        type_=POOL,
        checks=(
            name_is_valid,
            zones_are_in_the_region,
            zones_exist,
            nodes_account_exists,
            boot_disk_fits,
            cluster_exists,
            identity_needs_the_cluster,
            size_is_given_once,
            pods_per_node_are_possible,
            machine_type_stays,
            slice_is_whole,
            pods_range_exists,
            addresses_are_left,
        ),
        computed=pool_values,
        stored=pool_as_stored,
    ),
)
