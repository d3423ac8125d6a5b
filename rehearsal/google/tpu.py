"""TPU node pools: machine, topology, hosts and placement must be one slice.

https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus and .../concepts/tpus#topology; the shapes are
this room's own data, so that a wrong row in the project's catalogue is refused here.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from rehearsal.cloud import Attributes
from rehearsal.google.errors import bad_request, require
from rehearsal.google.resource import Change, Reference
from rehearsal.terraform.values import block_at, value_at

POLICY = "google_compute_resource_policy"

PLACED_BY = Reference(attribute="placement_policy.policy_name", type_=POLICY)

_FAMILIES = ("ct4p-", "ct5l-", "ct5lp-", "ct5p-", "ct6e-", "tpu7x-")
_CUBE = 4


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What GKE accepts for one machine type. `cubes` is the largest slice of 4x4x4 cubes, 0 where there is none."""

    accelerator: str
    chips_per_host: int
    vcpu: int
    boot_disks: list[str]
    single_host: str
    multi_host: list[str]
    cubes: int
    queued: bool
    workload_policy: bool

    def allows(self, topology: str) -> bool:
        """Whether several hosts can form a slice of this topology."""
        if topology in self.multi_host:
            return True
        sides = [int(side) for side in topology.split("x")] if topology.replace("x", "").isdigit() else []
        solid = len(sides) == 3 and all(side and side % _CUBE == 0 for side in sides)
        return solid and math.prod(sides) <= self.cubes * _CUBE**3

    def hosts(self, topology: str) -> int:
        return math.prod(int(side) for side in topology.split("x")) // self.chips_per_host


SHAPES = {
    name: Shape(**row) for name, row in json.loads((Path(__file__).parent / "tpu_shapes.json").read_text()).items()
}


def is_tpu(machine_type: str) -> bool:
    return machine_type.startswith(_FAMILIES)


def topology_of(pool: Attributes) -> str:
    """The topology that a pool asks for, "" when none."""
    return str(value_at(pool, "placement_policy.tpu_topology") or "")


def slice_is_whole(change: Change) -> None:
    """Machine type, topology, number of hosts, placement and zones of a TPU node pool fit together."""
    pool, topology = change.values, topology_of(change.values)
    machine_type = str(value_at(pool, "node_config.machine_type") or "e2-medium")
    if not is_tpu(machine_type):
        require(not topology, f"TPU topology is not supported for machine type {machine_type}.")
        return
    shape = SHAPES.get(machine_type)
    if shape is None:
        raise bad_request(f"Machine type with name '{machine_type}' does not exist in zone.")
    _in_one_zone(pool)
    if topology:
        _multi_host(change, shape, topology, machine_type)
    _capacity_mode(pool, shape)


def _in_one_zone(pool: Attributes) -> None:
    """The hosts of a slice are in one zone.

    https://cloud.google.com/kubernetes-engine/docs/how-to/tpus#create-node-pool
    """
    zones = pool.get("node_locations") or []
    zonal = len(str(pool.get("location") or "").split("-")) == 3
    one_zone = len(zones) == 1 or (zonal and not zones)
    require(one_zone, f"TPU node pools must be in exactly one zone; node_locations has {len(zones)}.")


def _multi_host(change: Change, shape: Shape, topology: str, machine_type: str) -> None:
    """A topology is for slices of several hosts, which are placed together.

    https://cloud.google.com/kubernetes-engine/docs/how-to/tpus#create-node-pool
    The words for single hosts: AI-Hypercomputer/xpk pull request 825; "intented" is Google's.
    """
    pool = change.values
    require(
        topology != shape.single_host,
        "TPU topology can't be specified with single-host TPU slice pool; please remove the tpu_topology from the"
        " node pool creation request if the node pool is intented to run with single-host TPU slice nodes.",
    )
    require(shape.allows(topology), f"Invalid TPU topology {topology} for machine type {machine_type}.")
    blue_green = value_at(pool, "upgrade_settings.strategy") == "BLUE_GREEN"
    require(not blue_green, "Blue-green upgrades are not supported with compact placement.")
    _size(pool, shape.hosts(topology), topology)
    if shape.workload_policy:
        _workload_policy(change, topology, machine_type)
    else:
        compact = value_at(pool, "placement_policy.type") == "COMPACT"
        require(compact, "TPU topology requires a placement policy of type COMPACT.")


def machine_type_stays(change: Change) -> None:
    """A TPU pool has its machines for good: GKE's own migration to other ones gives no slice of another shape.

    The words are not Google's, whose are not known.
    """
    path = "node_config.machine_type"
    before, after = (str(value_at(pool, path) or "") for pool in (change.prior or {}, change.values))
    stays = not is_tpu(before) or before == after
    require(stays, f"Machine type of a TPU node pool cannot be updated from {before} to {after}.")


def _size(pool: Attributes, hosts: int, topology: str) -> None:
    """A multi-host slice exists whole or not at all, and the limit is the one per zone.

    `total_max_node_count` leaves that at 0: vllm-project/ci-infra pull request 545.
    """
    scaling, first = block_at(pool, "autoscaling"), pool.get("initial_node_count")
    sizes: dict[str, tuple[object, tuple[object, ...]]]
    if scaling:
        low, high = scaling.get("min_node_count") or 0, scaling.get("max_node_count") or 0
        sizes = {"Maximum node count": (high, (hosts,)), "Minimum node count": (low, (0, hosts))}
        sizes["Initial node count"] = (first, (None, 0, hosts))
    else:
        count = pool.get("node_count")
        sizes = {"Node count": (first if count is None else count, (hosts,))}
    for word, (size, allowed) in sizes.items():
        valid = f"is not a valid size of TPU pod slice with topology {topology}; it must be {hosts}."
        require(size in allowed, f"{word} {size} {valid}")


def _workload_policy(change: Change, topology: str, machine_type: str) -> None:
    """Ironwood slices of several hosts are placed by a workload policy for the same topology, and by nothing else.

    https://cloud.google.com/kubernetes-engine/docs/how-to/tpu-ironwood; vllm-project/ci-infra pull request 547
    """
    require(
        not value_at(change.values, "placement_policy.type"),
        f"Creation of a managed instance group with {machine_type} machine type with placement policy is not"
        " supported. Use workload policy instead.",
    )
    name = PLACED_BY.target(change.client, change.values)
    require(name, f"A workload policy of type HIGH_THROUGHPUT is required for topology {topology}.")
    PLACED_BY(change)
    policy = block_at(change.get(POLICY, name), "workload_policy")
    fits = (policy.get("type"), policy.get("accelerator_topology")) == ("HIGH_THROUGHPUT", topology)
    require(fits, f"Resource policy '{name}' is not a HIGH_THROUGHPUT policy for topology {topology}.")


def _capacity_mode(pool: Attributes, shape: Shape) -> None:
    """Spot, reservations, flex-start and queued provisioning exclude each other.

    https://cloud.google.com/kubernetes-engine/docs/concepts/dws#limitations
    """
    config, scaling = block_at(pool, "node_config"), block_at(pool, "autoscaling")
    reservation = block_at(config, "reservation_affinity")
    specific = reservation.get("consume_reservation_type") == "SPECIFIC_RESERVATION"
    named = reservation.get("key") and reservation.get("values")
    require(
        not specific or named, "SPECIFIC_RESERVATION needs the key compute.googleapis.com/reservation-name and a value."
    )
    require(not (specific and config.get("spot")), "Spot VMs cannot consume a reservation.")
    flex, queued = config.get("flex_start") is True, value_at(pool, "queued_provisioning.enabled") is True
    if not (flex or queued):
        return
    words = "Flex start" if flex else "Queued provisioning"
    unreserved = reservation.get("consume_reservation_type") in ("NO_RESERVATION", None)
    from_zero = scaling and scaling.get("min_node_count") in (0, None)
    unrepaired = not flex or value_at(pool, "management.auto_repair") is False
    require(shape.queued, f"{words} is not supported for this TPU generation.")
    require(not config.get("spot"), f"{words} cannot be used with Spot VMs.")
    require(unreserved, f"{words} requires reservation affinity NO_RESERVATION.")
    require(from_zero, f"{words} requires autoscaling with a minimum of 0 nodes.")
    require(unrepaired, f"{words} requires node auto-repair to be disabled.")
