"""The cost of an environment by pool group, capacity mode and team: in rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from environment import CapacityMode, Environment
from environment.fleet.quotas import slices_of_teams
from environment.list_prices import Prices, Source
from tpuenv.cost import estimate, paid
from tpuenv.cost.amount import HOURS_A_MONTH, Cost

NOT_COUNTED = (
    "boot disks of TPU VMs",
    "what is paid by use: buckets, images, the TensorBoard, logs, metrics, builds, traffic, addresses of Cloud NAT",
    "GKE's further fee for a version in extended support",
    "discounts and taxes",
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """`label` is for people, `name` and `fields` are for JSON."""

    name: str
    label: str
    cost: Cost
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Report:
    """`modes` and `teams` are the costs of groups and TPU VMs in other orders.

    `kept` is what is left when all stacks but foundation are destroyed.
    """

    region: str
    groups: tuple[Row, ...]
    tpu_vms: tuple[Row, ...]
    modes: tuple[Row, ...]
    teams: tuple[Row, ...]
    rest: tuple[Row, ...]
    total: Cost
    kept: Cost
    sources: tuple[Source, ...]

    @property
    def saved(self) -> Cost:
        """By destroying all stacks but foundation."""
        return self.total - self.kept


def report(environment: Environment, prices: Prices) -> Report:
    everything = paid.of_environment(environment)
    # Foundation keeps the gateway of Cloud NAT, which is paid by the nodes that use it.
    kept = paid.Paid(nodes=(), gateways=everything.gateways)
    groups = tuple(
        Row(
            name=group.name,
            label=f"{group.name}: {group.slices} x {group.slice.tpu_type}, {group.chips} chips, {group.capacity.value}",
            cost=estimate.machines(paid.of_group(environment, group, group.slices), prices),
            fields={
                "type": group.slice.tpu_type,
                "slices": group.slices,
                "chips": group.chips,
                "capacity": group.capacity.value,
                "autoscaled": group.autoscaled,
            },
        )
        for group in environment.groups
    )
    tpu_vms = tuple(
        Row(
            name=vm.name,
            label=f"{vm.name}: {vm.accelerator_type}, {vm.slice.chips} chips, {vm.capacity.value}",
            cost=estimate.machines(paid.of_tpu_vm(vm), prices),
            fields={
                "type": vm.accelerator_type,
                "chips": vm.slice.chips,
                "capacity": vm.capacity.value,
                "team": vm.team,
            },
        )
        for vm in environment.tpu_vms
    )
    return Report(
        region=environment.settings.region,
        groups=groups,
        tpu_vms=tpu_vms,
        modes=tuple(_modes((*groups, *tpu_vms))),
        teams=tuple(_teams(environment, prices)),
        rest=tuple(_rest(environment, everything, prices)),
        total=estimate.everything(everything, prices),
        kept=estimate.everything(kept, prices),
        sources=tuple(prices.used),
    )


def _modes(groups: tuple[Row, ...]) -> Iterator[Row]:
    for mode in CapacityMode:
        rows = [row for row in groups if row.fields["capacity"] == mode.value]
        if rows:
            yield Row(name=mode.value, label=mode.value, cost=estimate.total(row.cost for row in rows))


def _teams(environment: Environment, prices: Prices) -> Iterator[Row]:
    shared = slices_of_teams(environment.groups, environment.teams)
    for team in environment.teams:
        own = {group: shared[group.name].get(team.name, 0) for group in environment.groups}
        vms = [vm for vm in environment.tpu_vms if vm.team == team.name]
        slices = sum(own.values()) + len(vms)
        chips = sum(count * group.slice.chips for group, count in own.items()) + sum(vm.slice.chips for vm in vms)
        costs = (estimate.machines(paid.of_group(environment, group, count), prices) for group, count in own.items())
        of_vms = (estimate.machines(paid.of_tpu_vm(vm), prices) for vm in vms)
        yield Row(
            name=team.name,
            label=f"{team.name}: {slices} slice{'' if slices == 1 else 's'}, {chips} chips",
            cost=estimate.total((*costs, *of_vms)),
            fields={"slices": {group.name: count for group, count in own.items() if count}, "chips": chips},
        )


def _rest(environment: Environment, everything: paid.Paid, prices: Prices) -> Iterator[Row]:
    settings = environment.settings
    least, most = settings.cpu_min_nodes, settings.cpu_max_nodes
    pool = f"CPU nodes: {least if least == most else f'{least} to {most}'} x {settings.cpu_machine_type}"
    yield Row(
        name="cpu-nodes",
        label="CPU pods, by their requests" if settings.autopilot else pool,
        cost=estimate.machines(paid.cpu_nodes(environment), prices),
    )
    if nodes := paid.system_nodes(environment):
        yield Row(
            name="system-nodes",
            label=f"system nodes: {nodes.idle} x {nodes.machine_type}",
            cost=estimate.machines(nodes, prices),
        )
    for disk_type in dict.fromkeys(nodes.disk_type for nodes in everything.nodes if nodes.disk_gib):
        disks = (estimate.boot_disks(nodes, prices) for nodes in everything.nodes if nodes.disk_type == disk_type)
        yield Row(name=f"boot-disks-{disk_type}", label=f"boot disks, {disk_type}", cost=estimate.total(disks))
    yield Row(name="cluster", label="GKE cluster", cost=estimate.clusters(everything, prices))
    yield Row(name="nat", label="Cloud NAT", cost=estimate.gateways(everything, prices))


def as_json(report: Report) -> dict[str, Any]:
    """Amounts are USD; where something has no known price, they are of the rest."""
    return {
        "currency": "USD",
        "region": report.region,
        "hours_per_month": HOURS_A_MONTH,
        **{
            key: [{"name": row.name, **row.fields, **_json_cost(row.cost)} for row in rows]
            for key, rows in (
                ("pool_groups", report.groups),
                ("tpu_vms", report.tpu_vms),
                ("capacity_modes", report.modes),
                ("teams", report.teams),
                ("rest", report.rest),
            )
        },
        "total": _json_cost(report.total),
        "kept_by_foundation": _json_cost(report.kept),
        "saved_without_the_rest": _json_cost(report.saved),
        "not_counted": list(NOT_COUNTED),
        "prices": [vars(source) for source in report.sources],
    }


def _json_cost(cost: Cost) -> dict[str, Any]:
    return {
        name: {
            "usd_per_hour": round(float(amount.usd), 6),
            "usd_per_month": round(float(amount.usd * HOURS_A_MONTH), 2),
            "unknown": dict(amount.unknown),
        }
        for name, amount in (("idle", cost.idle), ("busy", cost.busy))
    }
