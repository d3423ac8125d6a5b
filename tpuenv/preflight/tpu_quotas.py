"""Quotas of TPU chips in the region, by generation and by how Google is asked for the machines.

Google counts the chips of GKE's nodes in quotas of Compute Engine; those of TPU VMs in others, of the Cloud TPU API.
Reserved machines are counted when they are reserved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from environment import CapacityMode, Environment
from tpuenv.preflight import names, quotas
from tpuenv.preflight.question import Answers, Check, Question
from tpuenv.preflight.row import Row, Verdict, compared, unknown

_FAMILIES = "TPUS-PER-TPU-FAMILY-per-project-region"
_UNLIMITED = -1


@dataclass(frozen=True, kw_only=True)
class _Quota:
    """`metric` of an older one, which Compute Engine lists with the region's; else `id_` at Cloud Quotas, of one
    `family` where it has that dimension.
    """

    metric: str = ""
    id_: str = ""
    family: str = ""


# Of these Google takes flex-start from the quota on demand where the preemptible one does not suffice.
# https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus
_FALLS_BACK = ("ct6e",)

# By series of machine types, on demand, and spot and Dynamic Workload Scheduler, which count as preemptible; None where
# no id is documented. The names are the displayed ones of
# https://cloud.google.com/compute/resource-usage and https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus,
# the metrics Quota.metric of https://cloud.google.com/compute/docs/reference/rest/v1/regions/get, and the ids what
# `gcloud beta quotas info list --service=compute.googleapis.com` showed others in August 2026.
QUOTAS: dict[str, tuple[_Quota, _Quota | None]] = {
    "ct4p": (_Quota(metric="TPU_PODSLICE_V4"), _Quota(metric="PREEMPTIBLE_TPU_PODSLICE_V4")),
    "ct5lp": (_Quota(metric="TPU_LITE_PODSLICE_V5"), _Quota(metric="PREEMPTIBLE_TPU_LITE_PODSLICE_V5")),
    "ct5l": (_Quota(metric="TPU_LITE_DEVICE_V5"), _Quota(metric="PREEMPTIBLE_TPU_LITE_DEVICE_V5")),
    "ct5p": (_Quota(id_="TPU-V5P-per-project-region"), _Quota(id_="PREEMPTIBLE-TPU-V5P-per-project-region")),
    "ct6e": (_Quota(id_=_FAMILIES, family="CT6E"), _Quota(id_="PREEMPTIBLE-TPU-V6E-per-project-region")),
    "tpu7x": (_Quota(id_=_FAMILIES, family="TPU7X"), None),
}


def _question(environment: Environment, quota: _Quota) -> Question:
    """https://cloud.google.com/docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos/get"""
    if quota.metric:
        return quotas.of_region(environment)
    return Question(
        host="cloudquotas.googleapis.com",
        path=f"/v1/projects/{environment.settings.project_id}/locations/global/services/compute.googleapis.com"
        f"/quotaInfos/{quota.id_}",
        permission="cloudquotas.quotas.get",
        role="roles/cloudquotas.viewer",
    )


def _needed(environment: Environment, *, fallen_back: bool = False) -> dict[tuple[str, bool], int]:
    """Chips by series and whether they count as preemptible."""
    chips: dict[tuple[str, bool], int] = {}
    for group in environment.groups:
        series, capacity = group.slice.machine_type.series, group.capacity
        on_demand = fallen_back and series in _FALLS_BACK and capacity.comes_and_goes
        if capacity is not CapacityMode.RESERVATION:
            key = series, capacity is not CapacityMode.ON_DEMAND and not on_demand
            chips[key] = chips.get(key, 0) + group.chips
    return chips


def _rows(environment: Environment, answers: Answers) -> Iterator[Row]:
    ways = [[*_chip_rows(environment, answers, fallen_back=fallen_back)] for fallen_back in (False, True)]
    yield from min(ways, key=lambda rows: sum(row.verdict is not Verdict.OK for row in rows))
    for vm in environment.tpu_vms:
        why = "a quota of the Cloud TPU API; only the console shows it"
        page = f"{quotas.quotas_page(environment)}&service=tpu.googleapis.com"
        yield unknown(f"TPU VMs {vm.name}", f"{vm.slice.chips} chips of {vm.slice.generation}", why, page)


def _chip_rows(environment: Environment, answers: Answers, *, fallen_back: bool) -> Iterator[Row]:
    for (series, preemptible), chips in _needed(environment, fallen_back=fallen_back).items():
        quota = QUOTAS[series][preemptible]
        what = f"{'preemptible ' if preemptible else ''}{series} chips"
        if quota is None:
            why = "Google documents no id of this quota"
            yield unknown(what, str(chips), why, quotas.quotas_page(environment))
        elif quota.metric:
            yield from quotas.quota_rows(
                environment, answers, _question(environment, quota), {quota.metric: chips},
                region=environment.settings.region,
            )  # fmt: skip
        else:
            yield _row(environment, answers, quota, what, chips)


def _row(environment: Environment, answers: Answers, quota: _Quota, what: str, chips: int) -> Row:
    answer, settings = answers[_question(environment, quota)], environment.settings
    if answer.why:
        return answer.unknown(what, str(chips))
    value = _value(answer.body.get("dimensionsInfos", []), settings.region, quota.family)
    dimensions = {"region": settings.region, **({"tpu_family": quota.family} if quota.family else {})}
    fix = quotas.increase(environment, quota.id_, chips, dimensions)
    if value is None:
        return unknown(what, str(chips), f"Google states no value for {settings.region}, often 0", fix)
    have = "unlimited" if value == _UNLIMITED else f"{value:,}"
    used = ", yours included" if names.is_deployed(environment, answers) else ""
    return compared(what, f"{chips:,}", f"{have}{used}", ok=value == _UNLIMITED or chips <= value, fix=fix)


def _value(infos: list[dict[str, object]], region: str, family: str) -> int | None:
    """The value of the most specific entry that holds for the region and the family.

    An entry without a dimension holds for all its values, except those that have an entry of their own.
    """
    best: tuple[int, int] | None = None
    for info in infos:
        dimensions, details = info.get("dimensions") or {}, info.get("details") or {}
        if not isinstance(dimensions, dict) or not isinstance(details, dict):
            raise TypeError(info)
        same = {"region": region, "tpu_family": family.lower()}
        holds = all(str(value).lower() == same.get(key) for key, value in dimensions.items())
        if holds and "value" in details and (best is None or len(dimensions) > best[0]):
            best = len(dimensions), int(details["value"])
    return best[1] if best else None


def _questions(environment: Environment) -> Iterator[Question]:
    yield names.cluster(environment)
    for series, preemptible in {**_needed(environment), **_needed(environment, fallen_back=True)}:
        if quota := QUOTAS[series][preemptible]:
            yield _question(environment, quota)


CHECK = Check("TPU quotas", _questions, _rows)
