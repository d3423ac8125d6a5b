"""The API server over HTTP, for programs that run in the cluster: `/clusters/<full name>/api...`.

GET, LIST, POST, PUT, PATCH (merge) and DELETE of namespaced and cluster-wide objects; errors are Status objects.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote

from rehearsal.cloud import Cloud
from rehearsal.http_server import Request, Response, json_response
from rehearsal.kubernetes import rbac
from rehearsal.kubernetes.api import Api, merge
from rehearsal.kubernetes.resources import Resource
from rehearsal.kubernetes.status import Status

PREFIX = "/clusters/"

_PATH = re.compile(
    r"(?:api/(?P<core>v1)|apis/(?P<group>[^/]+/[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/status)?"
)


def serve(cloud: Cloud, request: Request) -> Response:
    """The answer to a request whose path starts with PREFIX."""
    match = re.fullmatch(r"(projects/[^/]+/locations/[^/]+/clusters/[^/]+)/(.+)", request.path.removeprefix(PREFIX))
    try:
        if match is None or cloud.get("google_container_cluster", match.group(1)) is None:
            raise Status(404, "there is no such cluster")
        return json_response(_answer(Api(cloud, match.group(1)), match.group(2), request))
    except Status as status:
        return json_response(status.body(), status=status.code)


def _answer(api: Api, path: str, request: Request) -> Any:
    if path == rbac.REVIEW and request.method == "POST":
        return rbac.review(api, _body(request))
    match = _PATH.fullmatch(path)
    if match is None:
        raise Status(404, "the server could not find the requested resource")
    version = match["core"] or match["group"]
    namespace, name = unquote(match["namespace"] or ""), unquote(match["name"] or "")
    if match["plural"] == "namespaces" and namespace:
        namespace = ""
    resource = api.by_plural(version, match["plural"])
    dry_run = request.query.get("dryRun") == "All"
    if request.method == "GET":
        return api.get(resource, namespace, name) if name else _list(api, resource, namespace)
    if request.method == "DELETE":
        return api.delete(resource, namespace, name) or {"kind": "Status", "apiVersion": "v1", "status": "Success"}
    body = _body(request)
    if request.method == "PATCH":
        return api.patch(resource, namespace, name, body, dry_run=dry_run)
    placed = merge({"apiVersion": resource.api_version, "kind": resource.kind}, body)
    if resource.namespaced:
        placed.setdefault("metadata", {}).setdefault("namespace", namespace)
    return api.create(placed, dry_run=dry_run) if request.method == "POST" else api.update(placed, dry_run=dry_run)


def _list(api: Api, resource: Resource, namespace: str) -> dict[str, Any]:
    items = api.all(resource, namespace)
    return {"apiVersion": resource.api_version, "kind": f"{resource.kind}List", "metadata": {}, "items": items}


def _body(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(request.body)
    except ValueError as error:
        raise Status(400, f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise Status(400, "the body is not an object")
    return body
