"""What Google offers where: machine types in the zones, and versions of GKE on the release channel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from environment import Environment
from environment.cpu_machine_types import system_machine_type
from environment.settings.values import parent_zone
from environment.tpu_catalogue import LEAST_GKE_VERSIONS, LEAST_GKE_VERSIONS_OF_AUTOPILOT, ZONES_OF_GENERATION
from tpuenv.preflight import names
from tpuenv.preflight.question import Answers, Check, Question
from tpuenv.preflight.row import Row, compared, unknown


def _machine_type(environment: Environment, zone: str, name: str) -> Question:
    return Question(
        host="compute.googleapis.com",
        path=f"/compute/v1/projects/{environment.settings.project_id}/zones/{zone}/machineTypes/{name}",
        permission="compute.machineTypes.get",
        role="roles/compute.viewer",
    )


def _gke(environment: Environment) -> Question:
    """https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations/getServerConfig"""
    settings = environment.settings
    return Question(
        host="container.googleapis.com",
        path=f"/v1/projects/{settings.project_id}/locations/{settings.region}/serverConfig",
        permission="container.clusters.list",
        role="roles/container.viewer",
    )


def _machines(environment: Environment) -> dict[tuple[str, str], str]:
    """Of the node pools: zone and machine type, and the TPU generation or "" for CPU nodes."""
    settings = environment.settings
    machines = {(group.zone, group.slice.machine_type.name): group.slice.generation for group in environment.groups}
    if not settings.autopilot:
        for name in (settings.cpu_machine_type, system_machine_type(settings.cpu_machine_type).name):
            machines[settings.zone_of_cpu_nodes, name] = ""
    return machines


def _rows(environment: Environment, answers: Answers) -> Iterator[Row]:
    project_id = environment.settings.project_id
    for (zone, name), generation in _machines(environment).items():
        answer, what, need = answers[_machine_type(environment, zone, name)], f"machine type {name}", f"in {zone}"
        if answer.why and answer.exists:
            yield answer.unknown(what, need)
            continue
        zones = f"    # Google lists {', '.join(ZONES_OF_GENERATION[generation])}" if generation else ""
        fix = f"gcloud compute machine-types list --project={project_id} --filter=name={name}{zones}"
        yield compared(what, need, "offered" if answer.exists else "not offered there", ok=answer.exists, fix=fix)
    yield _version_row(environment, answers)
    if environment.settings.autopilot:
        yield _zones_row(environment, answers)


def _zones_row(environment: Environment, answers: Answers) -> Row:
    """GKE chooses the zones of an Autopilot cluster, and makes nodes in no others; AI zones are in no list."""
    settings, answer = environment.settings, answers[names.cluster(environment)]
    zones = list(dict.fromkeys(group.zone for group in environment.groups))
    what, need = "zones of the cluster", ", ".join(zones)
    fix = (
        f"gcloud container clusters describe {environment.names.cluster} --project={settings.project_id} "
        f"--region={settings.region} --format='value(locations)'    # choose zones of these"
    )
    if answer.exists and answer.why:
        return answer.unknown(what, need)
    if answer.exists:
        has = [str(zone) for zone in answer.body.get("locations", [])]
        if {*zones} <= {*has}:
            return compared(what, need, "the cluster has them", ok=True, fix="")
        return unknown(what, need, f"the cluster is in {', '.join(has)}", fix)
    if all(zone == parent_zone(zone) for zone in zones):
        return compared(what, need, "standard zones of the region", ok=True, fix="")
    return unknown(what, need, "not created yet, and it may lack AI zones", fix)


def _version_row(environment: Environment, answers: Answers) -> Row:
    settings, answer = environment.settings, answers[_gke(environment)]
    versions = LEAST_GKE_VERSIONS_OF_AUTOPILOT if settings.autopilot else LEAST_GKE_VERSIONS
    least = max((versions.get(group.slice.generation, "") for group in environment.groups), key=_order)
    for_tpus = f", {least} for its TPUs" if least else ""
    what, need = "GKE version", f"{settings.gke_version or 'the default'} on {settings.release_channel}{for_tpus}"
    if answer.why:
        return answer.unknown(what, need)
    channels: list[dict[str, Any]] = answer.body["channels"]
    channel = next((item for item in channels if item["channel"] == settings.release_channel), {})
    offered = sorted(map(str, channel.get("validVersions", [])), key=_order)
    if settings.gke_version:
        matching = [version for version in offered if re.match(rf"{re.escape(settings.gke_version)}(?![0-9])", version)]
        version = matching[-1] if matching else ""
    else:
        version = str(channel.get("defaultVersion", ""))
    new_enough = [offer for offer in offered if _order(offer) >= _order(least)]
    if version and _order(version) >= _order(least):
        return compared(what, need, version, ok=True, fix="")
    if new_enough:
        fix = f"set GKE_VERSION={new_enough[-1]}"
    elif settings.release_channel != "RAPID":
        fix = "set RELEASE_CHANNEL=RAPID"
    else:  # it has the newest: what there is
        fix = f"gcloud container get-server-config --project={settings.project_id} --region={settings.region}"
    have = version or f"{settings.release_channel} has {', '.join(offered) or 'no versions'}"
    return compared(what, need, have, ok=False, fix=fix)


def _order(version: str) -> tuple[int, ...]:
    """1.34.0-gke.2201000 comes after 1.33.5-gke.9, and anything after ""."""
    return tuple(int(number) for number in re.findall("[0-9]+", version))


def _questions(environment: Environment) -> Iterator[Question]:
    yield _gke(environment)
    yield names.cluster(environment)
    yield from (_machine_type(environment, *machine) for machine in _machines(environment))


CHECK = Check("offers", _questions, _rows)
