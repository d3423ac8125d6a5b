"""Settings that contradict each other, and settings that Google may refuse or that do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from environment.problems import Problem
from environment.settings import values
from environment.settings.model import Settings

_TESTED_MINOR = 34  # Kueue 0.19.2 is supported and tested on Kubernetes 1.34 and later (its README)
# The most months that GKE supports a minor version, after which it takes no exclusion of minor upgrades.
# https://cloud.google.com/kubernetes-engine/docs/release-schedule
# https://cloud.google.com/kubernetes-engine/docs/concepts/maintenance-windows-and-exclusions
_SUPPORTED, _SUPPORTED_EXTENDED = 14, 24
_EXCLUSION = ("MAINTENANCE_EXCLUSION_START", "MAINTENANCE_EXCLUSION_END")


def conflicts(settings: Settings, now: datetime) -> Iterator[Problem]:
    """Settings that are right one by one and wrong together."""
    if values.region_of(settings.zone) != settings.region:
        yield Problem(
            keys=("ZONE", "REGION"),
            message=f"'{settings.zone}' is not in REGION '{settings.region}'; choose a zone of that region, or set "
            f"REGION={values.region_of(settings.zone)}",
        )
    if settings.cpu_zone and values.region_of(settings.cpu_zone) != settings.region:
        yield Problem(
            keys=("CPU_ZONE", "REGION"),
            message=f"'{settings.cpu_zone}' is not in REGION '{settings.region}'; choose a zone of that region, or "
            "leave it empty",
        )
    if settings.cpu_min_nodes > settings.cpu_max_nodes:
        yield Problem(
            keys=("CPU_MIN_NODES", "CPU_MAX_NODES"),
            message=f"'{settings.cpu_min_nodes}' is more than CPU_MAX_NODES '{settings.cpu_max_nodes}'; lower the one "
            "or raise the other",
        )
    if settings.destroy_data and settings.deletion_protection:
        yield Problem(
            keys=("DESTROY_DATA", "DELETION_PROTECTION"),
            message="'true' contradicts DELETION_PROTECTION 'true'; to destroy the environment with its data set "
            "DELETION_PROTECTION=false, to keep it set DESTROY_DATA=false",
        )
    if settings.alert_emails and not settings.observability:
        yield Problem(
            keys=("ALERT_EMAILS", "OBSERVABILITY"),
            message=f"'{settings.alert_emails[0]}' gets no email with OBSERVABILITY=false, which leaves the alerts "
            "out; set OBSERVABILITY=true, or leave it empty",
        )
    if settings.autopilot:
        yield from _autopilot_conflicts(settings)
    yield from _exclusion_conflicts(settings, now)
    if settings.build_repository:
        yield from _pipeline_conflicts(settings)


def _autopilot_conflicts(settings: Settings) -> Iterator[Problem]:
    """Settings of CPU nodes, of which Autopilot makes what pods need, and of a tool that wants node pools."""
    if settings.cpu_zone:
        yield Problem(
            keys=("CPU_ZONE", "CLUSTER_MODE"),
            message=f"'{settings.cpu_zone}' has no meaning with CLUSTER_MODE=autopilot, where GKE chooses the zones of "
            "CPU nodes; leave it empty",
        )
    if settings.cpu_min_nodes > 1:
        yield Problem(
            keys=("CPU_MIN_NODES", "CLUSTER_MODE"),
            message=f"'{settings.cpu_min_nodes}' has no meaning with CLUSTER_MODE=autopilot, where nodes exist while "
            "pods need them; leave it empty",
        )
    if settings.xpk_compatibility:
        yield Problem(
            keys=("XPK_COMPATIBILITY", "CLUSTER_MODE"),
            message="'true' is not possible with CLUSTER_MODE=autopilot: xpk expects the node pools of a Standard "
            "cluster; set it to false",
        )


def _pipeline_conflicts(settings: Settings) -> Iterator[Problem]:
    if not settings.builder_image:
        yield Problem(
            keys=("BUILDER_IMAGE", "BUILD_REPOSITORY"),
            message="is empty while BUILD_REPOSITORY is set; build the image that the builds run in "
            "(docs/pipeline.md, step 5) and write its name with its digest, or leave BUILD_REPOSITORY empty",
        )
    project = values.repository_parts(settings.build_repository)["project"]
    if project.isdigit() and not settings.project_number:
        yield Problem(
            keys=("BUILD_REPOSITORY", "PROJECT_NUMBER", "PROJECT_ID"),
            message=f"names its project by the number '{project}'; write projects/{settings.project_id}/... if that is "
            "the number of PROJECT_ID, or set PROJECT_NUMBER to it",
        )
    elif project not in (settings.project_id, settings.project_number):
        yield Problem(
            keys=("BUILD_REPOSITORY", "PROJECT_ID"),
            message=f"is connected to project '{project}', and triggers of PROJECT_ID '{settings.project_id}' cannot "
            "use that; connect the repository in this project",
        )


def _exclusion_conflicts(settings: Settings, now: datetime) -> Iterator[Problem]:
    start, end = settings.maintenance_exclusion_start, settings.maintenance_exclusion_end
    if (start is None) != (end is None):
        present, missing = _EXCLUSION if start else reversed(_EXCLUSION)
        yield Problem(keys=(missing, present), message=f"is empty while {present} is set; set both or none")
    elif start and end and end <= start:
        yield Problem(
            keys=tuple(reversed(_EXCLUSION)),
            message=f"'{end:%Y-%m-%dT%H:%M:%SZ}' is not after {_EXCLUSION[0]} '{start:%Y-%m-%dT%H:%M:%SZ}'; the end "
            "must be the later one",
        )
    months = _SUPPORTED_EXTENDED if settings.release_channel == "EXTENDED" else _SUPPORTED
    if end and end - now > timedelta(days=31 * months):
        yield Problem(
            keys=(_EXCLUSION[1], "RELEASE_CHANNEL"),
            message=f"'{end:%Y-%m-%dT%H:%M:%SZ}' is more than {months} months away; GKE takes an exclusion only up to "
            f"the end of support of the cluster's minor version, which RELEASE_CHANNEL={settings.release_channel} has "
            f"for at most {months} months; choose an earlier end",
        )


def settings_warnings(settings: Settings, now: datetime) -> Iterator[Problem]:
    """Settings that Google may refuse or that do nothing."""
    start, end = settings.maintenance_exclusion_start, settings.maintenance_exclusion_end
    if start and end and end <= now:
        yield Problem(
            keys=tuple(reversed(_EXCLUSION)),
            message=f"'{end:%Y-%m-%dT%H:%M:%SZ}' is in the past, so the exclusion keeps no upgrade away",
        )
    if settings.gke_version and int(settings.gke_version.split(".")[1]) < _TESTED_MINOR:
        yield Problem(
            keys=("GKE_VERSION",),
            message=f"'{settings.gke_version}' is older than 1.{_TESTED_MINOR}, the oldest that Kueue is tested on",
        )
