"""What Google has where: regions, zones, versions of GKE. Its lists are data of the rehearsal's own (locations.json); a
rehearsal can be given names besides them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rehearsal.cloud import Cloud
from rehearsal.google.errors import bad_request, forbidden, require
from rehearsal.google.resource import Change
from rehearsal.terraform.values import value_at

OFFERED = "offered"
_LISTS: dict[str, Any] = json.loads((Path(__file__).parent / "locations.json").read_text())
_REGIONS = frozenset(_LISTS["zones"])
# https://docs.cloud.google.com/scheduler/docs/locations
SCHEDULER_REGIONS = frozenset(_LISTS["scheduler_regions"])
_ZONES = {f"{region}-{letter}" for region, letters in _LISTS["zones"].items() for letter in letters}
_ZONES |= {*_LISTS["ai_zones"]}
OLDEST_MINOR: dict[str, int] = _LISTS["oldest_minor"]  # of GKE, by release channel
NEWEST_MINOR: int = _LISTS["newest_minor"]


def offer(cloud: Cloud, name: str) -> None:
    """From now on that region, zone or GKE version exists."""
    cloud.put(OFFERED, name, {})


def is_region(cloud: Cloud, name: str) -> bool:
    return name in _REGIONS or cloud.get(OFFERED, name) is not None


def is_zone(cloud: Cloud, name: str) -> bool:
    return name in _ZONES or cloud.get(OFFERED, name) is not None


def region_exists(change: Change) -> None:
    """The words of Compute Engine and of GKE: firezone/firezone pull request 7711, google/kctf issue 139."""
    cloud = change.client.cloud
    region = change.values.get("region") or change.client.settings.get("region")
    for name in (region, change.values.get("location")):
        known = not isinstance(name, str) or not name or is_region(cloud, name) or is_zone(cloud, name)
        require(known, f"Permission denied on 'locations/{name}' (or it may not exist).", forbidden)


def zones_exist(change: Change) -> None:
    """GKE's words: terraform-google-modules/terraform-google-kubernetes-engine issue 444."""
    for zone in change.values.get("node_locations") or []:
        require(is_zone(change.client.cloud, str(zone)), f'Location "{zone}" does not exist.')


def zone_exists(change: Change) -> None:
    """Of a resource in one zone."""
    zone = str(change.values["zone"])
    require(
        is_zone(change.client.cloud, zone), f"Permission denied on 'locations/{zone}' (or it may not exist).", forbidden
    )


def version_exists(change: Change) -> None:
    """Only the minor version is compared. The words: sassoftware/viya4-iac-gcp issue 58.

    https://docs.cloud.google.com/kubernetes-engine/docs/release-notes
    """
    version = str(change.values.get("min_master_version") or "")
    if not version or version == (change.prior or {}).get("min_master_version"):
        return
    channel = value_at(change.values, "release_channel.channel") or "REGULAR"
    oldest = OLDEST_MINOR.get(channel, min(OLDEST_MINOR.values()))
    known = version.startswith("1.") and oldest <= int(version.split(".")[1]) <= NEWEST_MINOR
    if not known and change.get(OFFERED, version) is None:
        raise bad_request(f'Master version "{version}" is unsupported.')
