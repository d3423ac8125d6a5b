"""The node labels by which pods get the slices of a pool group: of its flavor, and of the manifests rendered for it.

Source of the labels that Autopilot makes nodes for: GKE, "Deploy TPU workloads in GKE Autopilot", "Consume reserved
zonal resources", "Run fault-tolerant workloads at lower costs in Spot Pods", "About TPU consumption with flex-start";
of a reservation's blocks: GoogleCloudPlatform/cluster-toolkit, pkg/orchestrator/gke (buildNodeSelector).
"""

from __future__ import annotations

from collections.abc import Mapping

from environment.fleet.model import CapacityMode, PoolGroup
from vocabulary.keys import (
    ACCELERATOR_LABEL,
    FLEX_START_LABEL,
    POOL_GROUP_LABEL,
    RESERVATION_AFFINITY_LABEL,
    RESERVATION_BLOCK_LABEL,
    RESERVATION_NAME_LABEL,
    RESERVATION_PROJECT_LABEL,
    RESERVATION_SUB_BLOCK_LABEL,
    SPOT_LABEL,
    TOPOLOGY_LABEL,
    ZONE_LABEL,
)

# By the part of a reservation's name that it follows: projects/P/reservations/NAME/reservationBlocks/B/...
_RESERVATION_PARTS = {
    "reservations": RESERVATION_NAME_LABEL,
    "projects": RESERVATION_PROJECT_LABEL,
    "reservationBlocks": RESERVATION_BLOCK_LABEL,
    "reservationSubBlocks": RESERVATION_SUB_BLOCK_LABEL,
}


def node_selector(group: PoolGroup, *, autopilot: bool) -> dict[str, str]:
    """The labels of the group's nodes and of no other group's.

    Node pools carry the group's name. Autopilot's nodes carry no label of ours: they are what their pods ask for, so
    the labels say all that the group is.
    """
    of_slice = {ACCELERATOR_LABEL: group.slice.accelerator, TOPOLOGY_LABEL: group.slice.topology}
    if not autopilot:
        return {**of_slice, POOL_GROUP_LABEL: group.name}
    return {**of_slice, ZONE_LABEL: group.zone, **capacity_labels(group)}


def capacity_labels(group: PoolGroup) -> Mapping[str, str]:
    """Of nodes that Autopilot is to get in the group's way; none of on-demand ones, for which there is none."""
    if group.capacity is CapacityMode.SPOT:
        return {SPOT_LABEL: "true"}
    if group.capacity.comes_and_goes:
        return {FLEX_START_LABEL: "true"}
    if group.capacity is not CapacityMode.RESERVATION:
        return {}
    named = group.reservation if "reservations/" in group.reservation else f"reservations/{group.reservation}"
    parts = named.split("/")
    of_parts = {_RESERVATION_PARTS[kind]: name for kind, name in zip(parts[::2], parts[1::2], strict=True)}
    return {RESERVATION_AFFINITY_LABEL: "specific", **of_parts}
