"""What Google is paid for by the hour: of an environment by its settings, and of a plan before and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from environment import CapacityMode, Environment, PoolGroup, TpuVm
from environment.cpu_machine_types import SYSTEM_NODES, CpuMachineType, cpu_machine_type, system_machine_type
from environment.node_capacity import BOOT_DISK_GB
from environment.settings.values import region_of
from environment.tpu import UnknownTpuType, tpu_vm_slice


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """Equal nodes: `idle` of them exist while no job runs, `busy` when jobs use all that there may be.

    The boot disks of TPU VMs are not counted: nothing here chooses them. `autopilot`: GKE makes the nodes with their
    boot disks, and adds a premium.
    """

    machine_type: str
    capacity: str  # one of prices.CAPACITIES
    region: str
    disk_type: str = ""
    disk_gib: int = 0
    idle: int
    busy: int
    autopilot: bool = False


@dataclass(frozen=True, kw_only=True)
class Paid:
    """Nodes, and the regions of the clusters and of the gateways of Cloud NAT."""

    nodes: tuple[Nodes, ...]
    clusters: tuple[str, ...] = ()
    gateways: tuple[str, ...] = ()


def of_group(environment: Environment, group: PoolGroup, slices: int) -> Nodes:
    """The hosts of so many slices of a pool group."""
    hosts = slices * group.slice.hosts
    autopilot = environment.settings.autopilot
    return Nodes(
        machine_type=group.slice.machine_type.name,
        capacity=group.capacity.billed_as,
        region=environment.settings.region,
        disk_type="" if autopilot else group.slice.machine_type.boot_disk,
        disk_gib=0 if autopilot else BOOT_DISK_GB,
        idle=0 if group.autoscaled or autopilot else hosts,
        busy=hosts,
        autopilot=autopilot,
    )


def of_tpu_vm(vm: TpuVm) -> Nodes:
    """Its hosts, which exist until the VMs are deleted; queued ones are asked for by hand, at the price on demand."""
    queued = vm.capacity is CapacityMode.QUEUED
    return Nodes(
        machine_type=vm.slice.machine_type.name,
        capacity=(CapacityMode.ON_DEMAND if queued else vm.capacity).value,
        region=region_of(vm.zone),
        idle=0 if queued else vm.slice.hosts,
        busy=vm.slice.hosts,
    )


def cpu_nodes(environment: Environment) -> Nodes:
    """The CPU pool; with Autopilot, where pods are paid by their requests, one thing without a price."""
    settings = environment.settings
    if settings.autopilot:
        return _autopilot_pods(settings.region)
    machine_type = cpu_machine_type(settings.cpu_machine_type)
    return _without_tpus(machine_type, settings.region, idle=settings.cpu_min_nodes, busy=settings.cpu_max_nodes)


def system_nodes(environment: Environment) -> Nodes | None:
    """The system pool; None with Autopilot, which has none."""
    settings = environment.settings
    if settings.autopilot:
        return None
    machine_type = system_machine_type(settings.cpu_machine_type)
    return _without_tpus(machine_type, settings.region, idle=SYSTEM_NODES, busy=SYSTEM_NODES)


def _without_tpus(machine_type: CpuMachineType, region: str, *, idle: int, busy: int) -> Nodes:
    return Nodes(
        machine_type=machine_type.name,
        capacity=CapacityMode.ON_DEMAND.value,
        region=region,
        disk_type=machine_type.boot_disk,
        disk_gib=BOOT_DISK_GB,
        idle=idle,
        busy=busy,
    )


def _autopilot_pods(region: str) -> Nodes:
    what = "cluster's CPU pods (Autopilot)"
    return Nodes(machine_type=what, capacity=CapacityMode.ON_DEMAND.value, region=region, idle=1, busy=1)


def of_environment(environment: Environment) -> Paid:
    """Everything, as it is when all stacks are deployed."""
    region = environment.settings.region
    groups = (of_group(environment, group, group.slices) for group in environment.groups)
    vms = (of_tpu_vm(vm) for vm in environment.tpu_vms)
    of_system = [nodes] if (nodes := system_nodes(environment)) else []
    return Paid(nodes=(*groups, *vms, cpu_nodes(environment), *of_system), clusters=(region,), gateways=(region,))


def of_plans(plans: Iterable[Mapping[str, Any]], side: Literal["before", "after"]) -> Paid:
    """What is there before or after plans, as `terraform show -json` prints them; `before` is what a refresh has read.

    https://developer.hashicorp.com/terraform/internals/json-format#change-representation
    """
    resources = [
        (resource["type"], resource["change"][side])
        for plan in plans
        for resource in plan.get("resource_changes", [])
        if resource["mode"] == "managed" and resource["change"][side]
    ]
    clusters = [values for type_, values in resources if type_ == "google_container_cluster"]
    pods = (_autopilot_pods(values.get("location") or "") for values in clusters if values.get("enable_autopilot"))
    return Paid(
        nodes=(*(_NODES[type_](values) for type_, values in resources if type_ in _NODES), *pods),
        clusters=tuple(values.get("location") or "" for values in clusters),
        gateways=tuple(
            values.get("region") or "" for type_, values in resources if type_ == "google_compute_router_nat"
        ),
    )


def _node_pool(values: Mapping[str, Any]) -> Nodes:
    config = _block(values, "node_config")
    zones = len(values.get("node_locations") or [""])  # the counts of nodes are those of one zone
    if scaled := _block(values, "autoscaling"):
        idle, busy = scaled.get("min_node_count") or 0, scaled.get("max_node_count") or 0
    else:
        idle = busy = values.get("node_count") or 0
    return Nodes(
        machine_type=config.get("machine_type") or "machines of no known type",
        capacity=_capacity(config).value,
        region=values.get("location") or "",
        disk_type=config.get("disk_type") or "of no known type",
        disk_gib=config.get("disk_size_gb") or 0,
        idle=idle * zones,
        busy=busy * zones,
    )


def _tpu_vm(values: Mapping[str, Any]) -> Nodes:
    scheduling, type_ = _block(values, "scheduling_config"), values.get("accelerator_type") or ""
    capacity = CapacityMode.RESERVATION if scheduling.get("reserved") else CapacityMode.ON_DEMAND
    try:
        slice_ = tpu_vm_slice(type_)
        machine_type, hosts = slice_.machine_type.name, slice_.hosts
    except UnknownTpuType:
        machine_type, hosts = f"TPU VMs {type_}", 1
    return Nodes(
        machine_type=machine_type,
        capacity=(CapacityMode.SPOT if scheduling.get("spot") else capacity).value,
        region=region_of(values.get("zone") or ""),
        idle=hosts,
        busy=hosts,
    )


_NODES: dict[str, Callable[[Mapping[str, Any]], Nodes]] = {
    "google_container_node_pool": _node_pool,
    "google_tpu_v2_vm": _tpu_vm,
}


def _capacity(config: Mapping[str, Any]) -> CapacityMode:
    if config.get("flex_start"):
        return CapacityMode.FLEX_START
    if config.get("spot"):
        return CapacityMode.SPOT
    if _block(config, "reservation_affinity").get("consume_reservation_type") == "SPECIFIC_RESERVATION":
        return CapacityMode.RESERVATION
    return CapacityMode.ON_DEMAND


def _block(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A block of which there is one at most, which the schema makes a list."""
    blocks: Sequence[Mapping[str, Any]] = values.get(name) or [{}]
    return blocks[0]
