"""Quotas of Compute Engine in the project and the region, against what all of the environment uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from environment import Environment
from environment.cpu_machine_types import SYSTEM_NODES, cpu_machine_type, system_machine_type
from tpuenv.cost import paid
from tpuenv.preflight import names
from tpuenv.preflight.question import Answers, Check, Question
from tpuenv.preflight.row import Row, beside_usage, unknown

# Names of quotas: https://cloud.google.com/compute/docs/reference/rest/v1/regions/get (Quota.metric).
_NETWORKS = ("NETWORKS", "SUBNETWORKS", "ROUTERS")

# Series of machine types whose vCPUs have a quota of their own; those of e2 and n1 count in CPUS.
# https://cloud.google.com/compute/resource-usage#cpu_quota
_CPUS = {
    **dict.fromkeys(("e2", "n1"), "CPUS"),
    **{series: f"{series.upper()}_CPUS" for series in ("n2", "n2d", "c2", "c2d", "c3", "t2d")},
}

# Of the vCPUs of all series in all regions. New projects have it, others not: the same page.
_ALL_CPUS = "CPUS_ALL_REGIONS"

# https://cloud.google.com/compute/resource-usage#disk_quota
DISKS = {
    "pd-standard": "DISKS_TOTAL_GB",
    "pd-balanced": "SSD_TOTAL_GB",
    "pd-ssd": "SSD_TOTAL_GB",
    "hyperdisk-balanced": "HDB_TOTAL_GB",
}

_POOLS_WITHOUT_TPUS = 2  # the CPU and the system pool

# 64 of the 64,512 ports of an address for each. https://cloud.google.com/nat/docs/ports-and-addresses
_NODES_AN_ADDRESS = 1008


def of_region(environment: Environment) -> Question:
    settings = environment.settings
    return Question(
        host="compute.googleapis.com",
        path=f"/compute/v1/projects/{settings.project_id}/regions/{settings.region}",
        permission="compute.regions.get",
        role="roles/compute.viewer",
    )


def _of_project(environment: Environment) -> Question:
    return Question(
        host="compute.googleapis.com",
        path=f"/compute/v1/projects/{environment.settings.project_id}",
        permission="compute.projects.get",
        role="roles/compute.viewer",
    )


def _needed_in_region(environment: Environment) -> dict[str, int]:
    """By quota."""
    settings = environment.settings
    needed: dict[str, int] = {}
    if settings.autopilot:
        return needed  # what GKE makes depends on the pods
    nodes = [nodes for nodes in paid.of_environment(environment).nodes if nodes.disk_type]
    if quota := _CPUS.get(cpu_machine_type(settings.cpu_machine_type).series):
        needed[quota] = _vcpus(environment)
    for of_pool in nodes:
        quota = DISKS[of_pool.disk_type]
        needed[quota] = needed.get(quota, 0) + of_pool.busy * of_pool.disk_gib
    needed["INSTANCES"] = sum(of_pool.busy for of_pool in nodes)
    # GKE makes one of each node pool in each of its zones, and every slice is a node pool.
    needed["INSTANCE_GROUP_MANAGERS"] = _POOLS_WITHOUT_TPUS + sum(group.slices for group in environment.groups)
    # Those of Cloud NAT alone. Copies of Google's page differ on whether automatic ones count; here they do.
    needed |= dict.fromkeys(("STATIC_ADDRESSES", "IN_USE_ADDRESSES"), -(-needed["INSTANCES"] // _NODES_AN_ADDRESS))
    return needed


def quota_rows(
    environment: Environment, answers: Answers, question: Question, needed: Mapping[str, int], *, region: str
) -> Iterator[Row]:
    """A row a quota that is in the answer's list `quotas`; `region` is "" for those of the project."""
    answer, deployed = answers[question], names.is_deployed(environment, answers)
    listed: Mapping[str, Any] = {str(quota["metric"]): quota for quota in answer.body.get("quotas", [])}
    for name, amount in needed.items():
        quota = listed.get(name)
        if answer.why:
            yield answer.unknown(name, str(amount))
        elif quota is None:
            yield unknown(name, str(amount), "Google lists no such quota", quotas_page(environment))
        else:
            limit, usage = int(quota["limit"]), int(quota.get("usage", 0))
            fix = increase(
                environment, f"{name.replace('_', '-')}-per-project{'-region' if region else ''}",
                amount if deployed else amount + usage, {"region": region} if region else {},
            )  # fmt: skip
            yield beside_usage(
                name, f"{limit:,}, {usage:,} used", amount=amount, limit=limit, usage=usage, deployed=deployed,
                need=f"{amount:,}", fix=fix,
            )  # fmt: skip


def increase(environment: Environment, id_: str, value: int, dimensions: Mapping[str, str]) -> str:
    """The command that asks Google for a higher quota.

    https://cloud.google.com/sdk/gcloud/reference/beta/quotas/preferences/create
    """
    where = ",".join(f"{key}={value}" for key, value in dimensions.items())
    return (
        f"gcloud beta quotas preferences create --service=compute.googleapis.com --project="
        f"{environment.settings.project_id} --quota-id={id_} --preferred-value={value}"
        + (f" --dimensions={where}" if where else "")
    )


def quotas_page(environment: Environment) -> str:
    return f"https://console.cloud.google.com/iam-admin/quotas?project={environment.settings.project_id}"


def _questions(environment: Environment) -> Iterator[Question]:
    yield from (_of_project(environment), of_region(environment), names.cluster(environment))


def _needed_in_project(environment: Environment, answers: Answers) -> dict[str, int]:
    needed = dict.fromkeys(_NETWORKS, 0 if names.is_deployed(environment, answers) else 1)
    listed = {quota["metric"] for quota in answers[_of_project(environment)].body.get("quotas", [])}
    if _ALL_CPUS in listed and not environment.settings.autopilot:
        needed[_ALL_CPUS] = _vcpus(environment)
    return needed


def _vcpus(environment: Environment) -> int:
    """Of the CPU pool at its largest and the system pool, whose machines are of one series. The vCPUs of TPU machines
    count in no quota.
    """
    settings = environment.settings
    of_system = system_machine_type(settings.cpu_machine_type).vcpu * SYSTEM_NODES
    return cpu_machine_type(settings.cpu_machine_type).vcpu * settings.cpu_max_nodes + of_system


def _rows(environment: Environment, answers: Answers) -> Iterator[Row]:
    needed, settings = _needed_in_project(environment, answers), environment.settings
    yield from quota_rows(environment, answers, _of_project(environment), needed, region="")
    needed = _needed_in_region(environment)
    yield from quota_rows(environment, answers, of_region(environment), needed, region=settings.region)
    series = cpu_machine_type(settings.cpu_machine_type).series
    if series not in _CPUS and not settings.autopilot:
        why = "only the console shows this quota"
        yield unknown(f"vCPUs of {series}", str(_vcpus(environment)), why, quotas_page(environment))


CHECK = Check("quotas", _questions, _rows)
