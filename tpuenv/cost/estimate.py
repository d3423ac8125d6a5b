"""What is paid an hour, from what there is and the prices."""

from __future__ import annotations

from collections.abc import Iterable

from environment import CapacityMode
from environment.cpu_machine_types import UnknownCpuMachineType, cpu_machine_type
from environment.list_prices import Prices
from environment.tpu_catalogue import MACHINE_TYPES
from tpuenv.cost.amount import HOURS_A_MONTH, Amount, Cost
from tpuenv.cost.paid import Nodes, Paid

_TPUS = {machine.name: machine for machine in MACHINE_TYPES}


def machines(nodes: Nodes, prices: Prices) -> Cost:
    """The nodes without their boot disks."""
    premium = _unknown(1, "nodes of Autopilot (premium and boot disks)") if nodes.autopilot else Amount()
    return _for(nodes, _machine(nodes, prices) + premium)


def boot_disks(nodes: Nodes, prices: Prices) -> Cost:
    if not nodes.disk_gib:
        return Cost()
    price = prices.usd("disk_gib_month", nodes.disk_type, nodes.region)
    if price is None:
        return _for(nodes, _unknown(nodes.disk_gib, f"GiB of {nodes.disk_type}"))
    return _for(nodes, Amount(price * nodes.disk_gib / HOURS_A_MONTH))


def clusters(paid: Paid, prices: Prices) -> Cost:
    """The management fee of GKE."""
    fees = Amount()
    for region in paid.clusters:
        price = prices.usd("cluster_hour", region)
        fees += _unknown(1, "GKE clusters") if price is None else Amount(price)
    return Cost(fees, fees)


def gateways(paid: Paid, prices: Prices) -> Cost:
    """Cloud NAT, by the number of nodes that use it. https://cloud.google.com/nat/pricing"""
    total = Cost()
    for region in paid.gateways:
        price, most = prices.usd("nat_vm_hour", region), prices.usd("nat_most_hour", region)
        local = [nodes for nodes in paid.nodes if nodes.region == region]
        amounts = [
            _unknown(1, "gateways of Cloud NAT") if price is None or most is None else Amount(min(price * count, most))
            for count in (sum(nodes.idle for nodes in local), sum(nodes.busy for nodes in local))
        ]
        total += Cost(*amounts)
    return total


def everything(paid: Paid, prices: Prices) -> Cost:
    parts = (part for nodes in paid.nodes for part in (machines(nodes, prices), boot_disks(nodes, prices)))
    return total((*parts, clusters(paid, prices), gateways(paid, prices)))


def total(costs: Iterable[Cost]) -> Cost:
    return sum(costs, start=Cost())


def _for(nodes: Nodes, of_one: Amount) -> Cost:
    return Cost(of_one * nodes.idle, of_one * nodes.busy)


def _machine(nodes: Nodes, prices: Prices) -> Amount:
    if tpu := _TPUS.get(nodes.machine_type):
        price = prices.usd("chip_hour", tpu.series, nodes.capacity, nodes.region)
        if price is None:
            return _unknown(tpu.chips_per_host, f"chips of {tpu.series}, {nodes.capacity}")
        return Amount(price * tpu.chips_per_host)
    unknown = _unknown(1, nodes.machine_type)
    try:
        cpu = cpu_machine_type(nodes.machine_type)
    except UnknownCpuMachineType:
        return unknown
    vcpu, gigabyte = (prices.usd(section, cpu.series, nodes.region) for section in ("vcpu_hour", "gb_hour"))
    if vcpu is None or gigabyte is None or nodes.capacity != CapacityMode.ON_DEMAND.value:
        return unknown
    return Amount(vcpu * cpu.vcpu + gigabyte * cpu.memory_gb)


def _unknown(count: int, name: str) -> Amount:
    return Amount(unknown={name: count})
