"""What Google publishes that it offers where: zones, minor versions of GKE, and the regions of Cloud Scheduler.

The lists are data, in locations.json: `gcloud compute zones list`; the AI zones of Google's pages, which that command
shows only to projects that see them; "Current versions" in GKE's release notes
(https://docs.cloud.google.com/kubernetes-engine/docs/release-notes); and
https://docs.cloud.google.com/scheduler/docs/locations. Google opens more, so nothing is refused for not being there.
The rehearsal has a copy of its own, which a test compares.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from environment.fleet.model import Fleet
from environment.problems import Problem
from environment.settings.model import Settings
from environment.settings.values import region_of

_WHEN = "September 2026"
_LISTS: dict[str, Any] = json.loads(Path(__file__).with_name("locations.json").read_text(encoding="utf-8"))

ZONES: dict[str, str] = _LISTS["zones"]  # letters of the standard zones, by region
AI_ZONES: tuple[str, ...] = tuple(_LISTS["ai_zones"])
OLDEST_MINOR: dict[str, int] = _LISTS["oldest_minor"]  # by release channel
NEWEST_MINOR: int = _LISTS["newest_minor"]  # of any channel: the others follow within months
SCHEDULER_REGIONS = frozenset(_LISTS["scheduler_regions"])

# By the beginning of a region's name, the longest first: a near region that has had Cloud Scheduler for years.
_SCHEDULER_NEAR = (
    ("us-east", "us-east4"),
    ("us-west", "us-west1"),
    ("southamerica-", "southamerica-east1"),
    ("europe-", "europe-west1"),
    ("africa-", "europe-west1"),
    ("me-", "europe-west3"),
    ("asia-northeast", "asia-northeast1"),
    ("asia-south", "asia-southeast1"),
    ("asia-", "asia-east1"),
    ("australia-", "australia-southeast1"),
)


def scheduler_region(region: str) -> str:
    """The region of a Cloud Scheduler job that belongs to `region`: itself if it is offered there, or one that is near.

    A region without Cloud Scheduler answers with a lack of permission. A job may call an address anywhere.
    """
    if region in SCHEDULER_REGIONS:
        return region
    return next((near for start, near in _SCHEDULER_NEAR if region.startswith(start)), "us-central1")


def unlisted(settings: Settings, fleet: Fleet) -> Iterator[Problem]:
    """Regions, zones and a GKE version that are not published: new ones, or slips of the keyboard."""
    for key, region in (("REGION", settings.region), ("TENSORBOARD_REGION", settings.tensorboard_region)):
        if region not in ZONES:
            nearest = difflib.get_close_matches(region, ZONES, n=1, cutoff=0.6)
            hint = f"; did you mean '{nearest[0]}'?" if nearest else ""
            yield Problem(keys=(key,), message=f"'{region}' is not among Google's regions of {_WHEN}{hint}")
    zones = {group.zone: fleet.key("tpu_pools", group.name, "zone") for group in reversed(fleet.groups)}
    zones |= {vm.zone: fleet.key("tpu_vms", vm.name, "zone") for vm in fleet.tpu_vms if vm.zone not in zones}
    if settings.cpu_zone:
        zones.setdefault(settings.cpu_zone, "CPU_ZONE")
    for zone, key in zones.items():
        region = region_of(zone)
        known = [*(f"{region}-{letter}" for letter in ZONES.get(region, "")), *_ai_zones(region)]
        if known and zone not in known:
            yield Problem(
                keys=(key,),
                message=f"'{zone}' is not among Google's zones of {_WHEN}; {region} has {', '.join(known)}",
            )
    yield from _version(settings)


def _ai_zones(region: str) -> list[str]:
    return [zone for zone in AI_ZONES if region_of(zone) == region]


def _version(settings: Settings) -> Iterator[Problem]:
    if not settings.gke_version:
        return
    minor, channel = int(settings.gke_version.split(".")[1]), settings.release_channel
    oldest = OLDEST_MINOR[channel]
    if minor > NEWEST_MINOR:
        wrong = f"is newer than 1.{NEWEST_MINOR}, the newest that GKE had in {_WHEN}; did you mean '1.{NEWEST_MINOR}'?"
    elif minor < oldest:
        wrong = f"is older than 1.{oldest}, the oldest that GKE had on {channel} in {_WHEN}; did you mean '1.{oldest}'?"
    else:
        return
    yield Problem(keys=("GKE_VERSION", "RELEASE_CHANNEL"), message=f"'{settings.gke_version}' {wrong}")
