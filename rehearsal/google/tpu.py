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
from rehearsal.google.resource import ApiError, Change, one, reference

POLICY = "google_compute_resource_policy"
POLICY_PATH = "projects/{project}/regions/{region}/resourcePolicies/{name}"

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
    return str(one(pool, "placement_policy").get("tpu_topology") or "")


def slice_is_whole(change: Change) -> None:
    """Machine type, topology, number of hosts, placement and zones of a TPU node pool fit together."""
    pool = change.values
    machine_type = str(one(pool, "node_config").get("machine_type") or "")
    if not is_tpu(machine_type):
        if topology_of(pool):
            raise ApiError(
                400, f"TPU topology is not supported for machine type {machine_type or 'e2-medium'}.", "badRequest"
            )
        return
    shape = SHAPES.get(machine_type)
    if shape is None:
        raise ApiError(400, f"Machine type with name '{machine_type}' does not exist in zone.", "badRequest")
    _zone(pool)
    if topology_of(pool):
        _multi_host(change, shape, topology_of(pool), machine_type)
    capacity_mode(pool, shape)


def _zone(pool: Attributes) -> None:
    """The hosts of a slice are in one zone.

    https://cloud.google.com/kubernetes-engine/docs/how-to/tpus#create-node-pool
    """
    zones = pool.get("node_locations") or []
    zonal = len(str(pool.get("location") or "").split("-")) == 3
    if len(zones) != 1 and not (zonal and not zones):
        raise ApiError(
            400, f"TPU node pools must be in exactly one zone; node_locations has {len(zones)}.", "badRequest"
        )


def _multi_host(change: Change, shape: Shape, topology: str, machine_type: str) -> None:
    pool = change.values
    if topology == shape.single_host:
        # AI-Hypercomputer/xpk pull request 825; "intented" is Google's.
        raise ApiError(
            400,
            "TPU topology can't be specified with single-host TPU slice pool; please remove the tpu_topology from the"
            " node pool creation request if the node pool is intented to run with single-host TPU slice nodes.",
            "badRequest",
        )
    if not shape.allows(topology):
        raise ApiError(400, f"Invalid TPU topology {topology} for machine type {machine_type}.", "badRequest")
    if one(pool, "upgrade_settings").get("strategy") == "BLUE_GREEN":
        raise ApiError(400, "Blue-green upgrades are not supported with compact placement.", "badRequest")
    _size(pool, shape.hosts(topology), topology)
    if shape.workload_policy:
        _workload_policy(change, topology, machine_type)
    elif one(pool, "placement_policy").get("type") != "COMPACT":
        raise ApiError(400, "TPU topology requires a placement policy of type COMPACT.", "badRequest")


def hosts_stay_what_they_are(change: Change) -> None:
    """A TPU pool has its machines for good: GKE's own migration to other ones makes no slice of another shape.

    The words are not Google's, whose are not known.
    """
    before, after = (str(one(pool, "node_config").get("machine_type") or "") for pool in (change.prior, change.values))
    if is_tpu(before) and before != after:
        raise ApiError(
            400, f"Machine type of a TPU node pool cannot be updated from {before} to {after}.", "badRequest"
        )


def _size(pool: Attributes, hosts: int, topology: str) -> None:
    """A multi-host slice exists whole or not at all, and the limit is the one per zone.

    `total_max_node_count` leaves that at 0: vllm-project/ci-infra pull request 545.
    """
    autoscaling = one(pool, "autoscaling")
    words = f"is not a valid size of TPU pod slice with topology {topology}; it must be {hosts}."
    if autoscaling:
        maximum = autoscaling.get("max_node_count") or 0
        if maximum != hosts:
            raise ApiError(400, f"Maximum node count {maximum} {words}", "badRequest")
        if autoscaling.get("min_node_count") not in (0, None, hosts):
            raise ApiError(400, f"Minimum node count {autoscaling['min_node_count']} {words}", "badRequest")
        first = pool.get("initial_node_count")
        if isinstance(first, int) and first not in (0, hosts):
            raise ApiError(400, f"Initial node count {first} {words}", "badRequest")
        return
    given = pool.get("node_count")
    size = given if isinstance(given, int) else pool.get("initial_node_count")
    if size != hosts:
        raise ApiError(400, f"Node count {size} {words}", "badRequest")


def _workload_policy(change: Change, topology: str, machine_type: str) -> None:
    """Ironwood slices of several hosts are placed by a workload policy for the same topology, and by nothing else.

    https://cloud.google.com/kubernetes-engine/docs/how-to/tpu-ironwood; vllm-project/ci-infra pull request 547
    """
    pool = change.values
    if one(pool, "placement_policy").get("type"):
        raise ApiError(
            400,
            f"Creation of a managed instance group with {machine_type} machine type with placement policy is not"
            " supported. Use workload policy instead.",
            "badRequest",
        )
    given = one(pool, "placement_policy").get("policy_name")
    if not given:
        raise ApiError(
            400, f"A workload policy of type HIGH_THROUGHPUT is required for topology {topology}.", "badRequest"
        )
    region = "-".join(str(pool.get("location")).split("-")[:2])
    name = reference(given, POLICY_PATH, change.client, project=change.project, region=region)
    policy = change.get(POLICY, name)
    if policy is None:
        raise ApiError(404, f"The resource '{name}' was not found", "notFound")
    found = one(policy, "workload_policy")
    if (found.get("type"), found.get("accelerator_topology")) != ("HIGH_THROUGHPUT", topology):
        raise ApiError(
            400, f"Resource policy '{name}' is not a HIGH_THROUGHPUT policy for topology {topology}.", "badRequest"
        )


def capacity_mode(pool: Attributes, shape: Shape) -> None:
    """Spot, reservations, flex-start and queued provisioning exclude each other.

    https://cloud.google.com/kubernetes-engine/docs/concepts/dws#limitations
    """
    config = one(pool, "node_config")
    reservation = one(config, "reservation_affinity")
    kind = reservation.get("consume_reservation_type")
    flex, queued = config.get("flex_start") is True, one(pool, "queued_provisioning").get("enabled") is True
    if kind == "SPECIFIC_RESERVATION" and not (reservation.get("key") and reservation.get("values")):
        raise ApiError(
            400, "SPECIFIC_RESERVATION needs the key compute.googleapis.com/reservation-name and a value.", "badRequest"
        )
    if config.get("spot") and kind == "SPECIFIC_RESERVATION":
        raise ApiError(400, "Spot VMs cannot consume a reservation.", "badRequest")
    if not (flex or queued):
        return
    words = "Flex start" if flex else "Queued provisioning"
    problems = {
        f"{words} is not supported for this TPU generation.": not shape.queued,
        f"{words} cannot be used with Spot VMs.": bool(config.get("spot")),
        f"{words} requires reservation affinity NO_RESERVATION.": kind not in ("NO_RESERVATION", None),
        f"{words} requires autoscaling with a minimum of 0 nodes.": one(pool, "autoscaling").get("min_node_count")
        not in (0, None)
        or not one(pool, "autoscaling"),
        f"{words} requires node auto-repair to be disabled.": flex
        and one(pool, "management").get("auto_repair") is not False,
    }
    for text, wrong in problems.items():
        if wrong:
            raise ApiError(400, text, "badRequest")


def policy_is_unused(change: Change) -> None:
    """A policy that places a node pool cannot be deleted.

    https://cloud.google.com/compute/docs/instances/use-compact-placement-policies
    """
    for item in change.client.cloud.find("google_container_node_pool"):
        given = one(item.attributes, "placement_policy").get("policy_name")
        region = "-".join(str(item.attributes.get("location")).split("-")[:2])
        project = str(item.attributes.get("project"))
        if given and reference(given, POLICY_PATH, change.client, project=project, region=region) == change.name:
            raise ApiError(
                400,
                f"The resource policy '{change.name}' is already being used by '{item.name}'",
                "resourceInUseByAnotherResource",
            )
