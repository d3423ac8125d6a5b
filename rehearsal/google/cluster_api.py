"""A cluster over GKE's REST API, to learn the DNS endpoint of its API server.

https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters/get
"""

from __future__ import annotations

import re

from rehearsal.cloud import Cloud
from rehearsal.google.gke import dns_endpoint
from rehearsal.google.http_access import caller, permit
from rehearsal.google.names import region_of
from rehearsal.google.network import CLUSTER
from rehearsal.http_server import HttpError, Request, Response, json_response
from rehearsal.terraform.values import block_at

_GET = re.compile(r"/v1/(projects/([^/]+)/locations/([^/]+)/clusters/([^/:]+))")


def serves(path: str) -> bool:
    return bool(_GET.fullmatch(path))


def serve(cloud: Cloud, request: Request) -> Response:
    """The cluster's name and DNS endpoint; raises HttpError."""
    match = _GET.fullmatch(request.path)
    if match is None or request.method != "GET":
        raise HttpError(404, "Not Found")
    name, project, location, cluster = match.groups()
    permit(cloud, caller(request), "container.clusters.get", name, project=project)
    stored = cloud.get(CLUSTER, name)
    if stored is None:
        raise HttpError(404, f"Not found: {name}.")
    config = block_at(stored, "control_plane_endpoints_config.dns_endpoint_config")
    endpoint = {
        "endpoint": dns_endpoint(name, region_of(location)),
        "allowExternalTraffic": config.get("allow_external_traffic") is True,
    }
    return json_response({"name": cluster, "controlPlaneEndpointsConfig": {"dnsEndpointConfig": endpoint}})
