"""Reservations that pool groups name: whether they exist, match and have room."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from environment import CapacityMode, Environment, PoolGroup
from tpuenv.preflight import names
from tpuenv.preflight.question import Answers, Check, Question
from tpuenv.preflight.row import Row, beside_usage, compared


def _reserved(environment: Environment) -> Iterator[tuple[Question, str, str, list[PoolGroup]]]:
    """Each reservation: its question, its name, its project and the groups in it."""
    groups: dict[tuple[str, str, str], list[PoolGroup]] = {}
    for group in environment.groups:
        if group.capacity is CapacityMode.RESERVATION:
            shared = re.match("projects/([^/]+)/reservations/", group.reservation)
            name = group.reservation.removeprefix(shared[0] if shared else "").partition("/")[0]
            project = shared[1] if shared else environment.settings.project_id
            groups.setdefault((project, group.zone, name), []).append(group)
    for (project, zone, name), of_it in groups.items():
        question = Question(
            host="compute.googleapis.com",
            path=f"/compute/v1/projects/{project}/zones/{zone}/reservations/{name}",
            permission="compute.reservations.get",
            role="roles/compute.viewer",
        )
        yield question, name, project, of_it


def _rows(environment: Environment, answers: Answers) -> Iterator[Row]:
    for question, name, project, groups in _reserved(environment):
        answer, zone = answers[question], groups[0].zone
        what, hosts = f"reservation {name}", sum(group.hosts for group in groups)
        types = " and ".join(sorted({group.slice.machine_type.name for group in groups}))
        need = f"{hosts} x {types} in {zone}"
        fix = f"gcloud compute reservations list --project={project} --filter=zone:{zone}"
        if not answer.exists:
            yield compared(what, need, "does not exist there", ok=False, fix=fix)
        elif answer.why:
            yield answer.unknown(what, need)
        else:
            total, used, of_type, wrong = _compared_with(answer.body, groups)
            have = f"{total} x {of_type}, {used} used"
            describe = f"gcloud compute reservations describe {name} --project={project} --zone={zone}"
            if wrong:
                yield compared(what, need, wrong, ok=False, fix=describe)
            else:
                deployed = names.is_deployed(environment, answers)
                yield beside_usage(
                    what, have, amount=hosts, limit=total, usage=used, deployed=deployed, need=need, fix=describe
                )


def _compared_with(reservation: Mapping[str, Any], groups: list[PoolGroup]) -> tuple[int, int, str, str]:
    """How many machines it has, how many are used, their type, and what is wrong with it, or "".

    https://cloud.google.com/compute/docs/reference/rest/v1/reservations
    """
    machine_types = {group.slice.machine_type.name for group in groups}
    if specific := reservation.get("specificReservation"):
        reserved_type = str(specific["instanceProperties"]["machineType"])
        right = machine_types == {reserved_type}
        total, used = int(specific["count"]), int(specific.get("inUseCount", 0))
    else:
        # Of TPUs also an aggregate one: chips of a family, as VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT6E.
        aggregate, chips_per_host = reservation["aggregateReservation"], groups[0].slice.chips_per_host
        reserved_type = str(aggregate["vmFamily"])
        right = all(reserved_type.endswith(f"_{group.slice.machine_type.series.upper()}") for group in groups)
        total, used = (
            sum(int(item["accelerator"]["acceleratorCount"]) for item in aggregate.get(key, [])) // chips_per_host
            for key in ("reservedResources", "inUseResources")
        )
    status, wrong = str(reservation.get("status", "")), ""
    if not right:
        wrong = f"it is of {reserved_type}"
    elif status != "READY":
        wrong = f"it is {status or 'in no known state'}"
    # A node pool names its reservation, and Google refuses that of one which any machine may use.
    # https://cloud.google.com/compute/docs/instances/reservations-consume#consuming_instances_from_a_specific_reservation
    elif reservation.get("specificReservationRequired") is not True:
        wrong = "made without --require-specific-reservation"
    return total, used, reserved_type, wrong


def _questions(environment: Environment) -> Iterator[Question]:
    reserved = [question for question, *_ in _reserved(environment)]
    yield from [names.cluster(environment), *reserved] if reserved else []


CHECK = Check("reservations", _questions, _rows)
