"""What Google publishes that it offers: zones and minor versions of GKE. It opens more, so no deploy is refused for it.

Zones: `gcloud compute zones list` of September 2026, and the AI zones of Google's pages, which that command shows only
to projects that see them. Versions: the table "Current versions" of GKE's release notes, September 2026.
https://docs.cloud.google.com/kubernetes-engine/docs/release-notes
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from environment.fleet.model import Fleet
from environment.problems import Problem
from environment.settings.model import Settings
from environment.settings.values import region_of

_WHEN = "September 2026"

# Letters of the standard zones, by region.
ZONES = {
    **dict.fromkeys(("europe-west1", "us-east1"), "bcd"),
    **dict.fromkeys(("us-central1",), "abcf"),
    **dict.fromkeys(("us-central2",), "abcd"),
    **dict.fromkeys(
        (
            "africa-south1",
            *("asia-east1", "asia-east2", "asia-northeast1", "asia-northeast2", "asia-northeast3", "asia-south1"),
            *("asia-south2", "asia-southeast1", "asia-southeast2", "asia-southeast3"),
            *("australia-southeast1", "australia-southeast2"),
            *("europe-central2", "europe-north1", "europe-north2", "europe-southwest1", "europe-west2", "europe-west3"),
            *("europe-west4", "europe-west6", "europe-west8", "europe-west9", "europe-west10", "europe-west12"),
            "europe-west15",
            *("me-central1", "me-central2", "me-west1"),
            *("northamerica-northeast1", "northamerica-northeast2", "northamerica-south1"),
            *("southamerica-east1", "southamerica-west1"),
            *(
                "us-east4",
                "us-east5",
                "us-east7",
                "us-south1",
                "us-west1",
                "us-west2",
                "us-west3",
                "us-west4",
                "us-west8",
            ),
        ),
        "abc",
    ),
}
AI_ZONES = ("us-central1-ai1a", "us-south1-ai1b")

OLDEST_MINOR = {"RAPID": 34, "REGULAR": 34, "STABLE": 34, "EXTENDED": 31}
NEWEST_MINOR = 37  # of any channel: the others follow within months


def unlisted(settings: Settings, fleet: Fleet) -> Iterator[Problem]:
    """Regions, zones and a GKE version that are not published: new ones, or slips of the keyboard."""
    for key, region in (("REGION", settings.region), ("TENSORBOARD_REGION", settings.tensorboard_region)):
        if region not in ZONES:
            nearest = difflib.get_close_matches(region, ZONES, n=1, cutoff=0.6)
            hint = f"; did you mean '{nearest[0]}'?" if nearest else ""
            yield Problem(keys=(key,), message=f"'{region}' is not among Google's regions of {_WHEN}{hint}")
    zones = {group.zone: fleet.key("tpu_pools", group.name, "zone") for group in reversed(fleet.groups)}
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
