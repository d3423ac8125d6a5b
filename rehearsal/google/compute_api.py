"""What Compute Engine and GKE offer, and the quotas, over HTTP. Quotas are those of a project that has asked for more.

https://cloud.google.com/compute/docs/reference/rest/v1/projects/get, regions/get, machineTypes/get, reservations/get
https://cloud.google.com/docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos/get
https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations/getServerConfig
https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters/list
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rehearsal.cloud import Attributes, Cloud
from rehearsal.google import locations
from rehearsal.google.gke import VERSION
from rehearsal.google.http_access import caller, permit
from rehearsal.google.network import CLUSTER, NETWORK, ROUTER, SUBNET
from rehearsal.http_server import HttpError, Request, Response, json_response
from rehearsal.terraform.values import value_at

_LIMIT = 100_000  # of every quota but these
_LIMITS = {"NETWORKS": 15, "SUBNETWORKS": 275, "ROUTERS": 20}
_COUNTED = {"NETWORKS": NETWORK, "SUBNETWORKS": SUBNET, "ROUTERS": ROUTER}
_OF_REGION = (
    *("CPUS", "N2_CPUS", "N2D_CPUS", "C2_CPUS", "C2D_CPUS", "C3_CPUS", "T2D_CPUS", "DISKS_TOTAL_GB", "SSD_TOTAL_GB"),
    *("HDB_TOTAL_GB", "INSTANCES", "INSTANCE_GROUP_MANAGERS", "IN_USE_ADDRESSES", "STATIC_ADDRESSES"),
    *("TPU_PODSLICE_V4", "PREEMPTIBLE_TPU_PODSLICE_V4", "TPU_LITE_DEVICE_V5", "PREEMPTIBLE_TPU_LITE_DEVICE_V5"),
    *("TPU_LITE_PODSLICE_V5", "PREEMPTIBLE_TPU_LITE_PODSLICE_V5"),
)
_QUOTA_IDS = {
    "TPUS-PER-TPU-FAMILY-per-project-region": ("CT6E", "TPU7X"),
    "TPU-V5P-per-project-region": (),
    "PREEMPTIBLE-TPU-V5P-per-project-region": (),
    "PREEMPTIBLE-TPU-V6E-per-project-region": (),
}

RESERVATION = "reservation"  # by its full name, as the API shows it

_PROJECT = r"(projects/(?P<project>[^/]+))"
_PATHS = {
    "compute.projects.get": re.compile(rf"/compute/v1/{_PROJECT}"),
    "compute.regions.get": re.compile(rf"/compute/v1/{_PROJECT}/regions/(?P<place>[^/]+)"),
    "compute.machineTypes.get": re.compile(
        rf"/compute/v1/{_PROJECT}/zones/(?P<place>[^/]+)/machineTypes/(?P<name>[^/]+)"
    ),
    "compute.reservations.get": re.compile(
        rf"/compute/v1/{_PROJECT}/zones/(?P<place>[^/]+)/reservations/(?P<name>[^/]+)"
    ),
    "compute.networks.get": re.compile(rf"/compute/v1/{_PROJECT}/global/networks/(?P<name>[^/]+)"),
    "container.clusters.list": re.compile(
        rf"/v1/{_PROJECT}/locations/(?P<place>[^/]+)/(?P<name>serverConfig|clusters)"
    ),
    "cloudquotas.quotas.get": re.compile(
        rf"/v1/{_PROJECT}/locations/global/services/compute\.googleapis\.com/quotaInfos/(?P<name>[^/]+)"
    ),
}


def serves(path: str) -> bool:
    return any(pattern.fullmatch(path) for pattern in _PATHS.values())


def serve(cloud: Cloud, request: Request) -> Response:
    """The answer; raises HttpError."""
    for permission, pattern in _PATHS.items():
        match = pattern.fullmatch(request.path)
        if match and request.method == "GET":
            permit(cloud, caller(request), permission, match[1], project=match["project"])
            body = _answer(cloud, permission, match)
            if body is None:
                raise HttpError(404, f"The resource '{request.path.removeprefix('/compute/v1/')}' was not found")
            return json_response(body)
    raise HttpError(404, "Not Found")


def _answer(cloud: Cloud, permission: str, match: re.Match[str]) -> Attributes | None:
    """The resource, None where there is none."""
    given, path = match.groupdict(), match[0].removeprefix("/compute/v1/")
    place, name = given.get("place", ""), given.get("name", "")
    if permission == "compute.projects.get":
        counted = {quota: len(cloud.find(kind, prefix=f"{match[1]}/")) for quota, kind in _COUNTED.items()}
        return {
            "kind": "compute#project",
            "name": given["project"],
            "quotas": [_quota(*item) for item in counted.items()],
        }
    if permission == "compute.regions.get" and locations.is_region(cloud, place):
        return {"kind": "compute#region", "name": place, "quotas": [_quota(metric, 0) for metric in _OF_REGION]}
    if permission == "compute.machineTypes.get" and locations.is_zone(cloud, place):
        return {"kind": "compute#machineType", "name": name, "zone": place}
    if permission == "compute.reservations.get":
        return cloud.get(RESERVATION, path)
    if permission == "compute.networks.get" and cloud.get(NETWORK, path) is not None:
        return {"kind": "compute#network", "name": name}
    if permission == "container.clusters.list":
        return _server_config() if name == "serverConfig" else {"clusters": [*_clusters(cloud, match[1])]}
    if permission == "cloudquotas.quotas.get" and name in _QUOTA_IDS:
        return _quota_info(match[0].removeprefix("/v1/"), name)
    return None


def _quota(metric: str, usage: int) -> dict[str, Any]:
    return {"metric": metric, "limit": float(_LIMITS.get(metric, _LIMIT)), "usage": float(usage)}


def _clusters(cloud: Cloud, project: str) -> Iterator[Attributes]:
    for item in cloud.find(CLUSTER, prefix=f"{project}/"):
        pool = value_at(item.attributes, "workload_identity_config.workload_pool")
        yield {
            "name": item.attributes["name"],
            "location": item.attributes["location"],
            "workloadIdentityConfig": {"workloadPool": pool},
        }


def _server_config() -> Attributes:
    channels = {
        channel: [f"1.{minor}.1-gke.1000000" for minor in range(oldest, locations.NEWEST_MINOR + 1)] + [VERSION]
        for channel, oldest in locations.OLDEST_MINOR.items()
    }
    listed = [
        {"channel": channel, "defaultVersion": VERSION, "validVersions": versions}
        for channel, versions in channels.items()
    ]
    return {"defaultClusterVersion": VERSION, "channels": listed}


def _quota_info(path: str, id_: str) -> Attributes:
    """A value for each family that has one, and one for all others."""
    entries: list[dict[str, Any]] = [{"details": {"value": str(0 if _QUOTA_IDS[id_] else _LIMIT)}}]
    for family in _QUOTA_IDS[id_]:
        entries.insert(0, {"dimensions": {"tpu_family": family}, "details": {"value": str(_LIMIT)}})
    dimensions = ["region", *(["tpu_family"] if _QUOTA_IDS[id_] else [])]
    return {"name": path, "quotaId": id_, "dimensions": dimensions, "dimensionsInfos": entries}
