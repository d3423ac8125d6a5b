"""The API server over HTTP: `/clusters/<full name or DNS endpoint>/api...`.

GET, LIST (with selectors of labels, in chunks), POST, PUT, PATCH (merge) and DELETE of namespaced and cluster-wide
objects, and the logs of pods; errors are Status objects. A request with a token may do what its account may. One
without is the administrator's, as through `kubectl proxy`: so the programs in the cluster call it.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote

from rehearsal.cloud import Cloud
from rehearsal.google.gke import dns_endpoint
from rehearsal.google.names import region_of
from rehearsal.google.network import CLUSTER
from rehearsal.google.permissions import account_of
from rehearsal.http_server import Request, Response, json_response
from rehearsal.kubernetes import rbac
from rehearsal.kubernetes.api import Api, merge
from rehearsal.kubernetes.cluster_access import Authorized, api_of
from rehearsal.kubernetes.pods import log_of
from rehearsal.kubernetes.resources import POD, Resource
from rehearsal.kubernetes.status import Status
from rehearsal.terraform.resource_type import Refusal

PREFIX = "/clusters/"

_TERM = re.compile(r"[^=!,()\s]+==?[^=!,()\s]*")

_PATH = re.compile(
    r"(?:api/(?P<core>v1)|apis/(?P<group>[^/]+/[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/status|(?P<log>/log))?"
)


def serve(cloud: Cloud, request: Request) -> Response:
    """The answer to a request whose path starts with PREFIX."""
    match = re.fullmatch(r"(projects/[^/]+/locations/[^/]+/clusters/[^/]+|[^/]+)/(.+)", request.path[len(PREFIX) :])
    try:
        cluster = _full_name(cloud, match[1]) if match else None
        if match is None or cluster is None:
            raise Status(404, "there is no such cluster")
        return _answer(_api(cloud, cluster, request), match[2], request)
    except Status as status:
        return json_response(status.body(), status=status.code)


def _full_name(cloud: Cloud, name: str) -> str | None:
    """Of the cluster with this full name or DNS endpoint."""
    for item in cloud.find(CLUSTER):
        if name in (item.name, dns_endpoint(item.name, region_of(item.attributes.get("location")))):
            return item.name
    return None


def _api(cloud: Cloud, cluster: str, request: Request) -> Api:
    authorization = request.headers.get("authorization")
    if authorization is None:
        return Api(cloud, cluster)
    account = account_of(authorization.removeprefix("Bearer "))
    if account is None:
        raise Status(401, "Unauthorized")
    try:
        return api_of(cloud, cluster, account)
    except Refusal as refusal:
        raise Status(403, str(refusal)) from None


def _answer(api: Api, path: str, request: Request) -> Response:
    if path == rbac.REVIEW and request.method == "POST":
        return json_response(rbac.review(api, _body(request)))
    if path == rbac.SELF_REVIEW and request.method == "POST":
        return json_response(_self_review(api, _body(request)))
    match = _PATH.fullmatch(path)
    if match is None:
        raise Status(404, "the server could not find the requested resource")
    version = match["core"] or match["group"]
    namespace, name = unquote(match["namespace"] or ""), unquote(match["name"] or "")
    if match["plural"] == "namespaces" and namespace:
        namespace = ""
    resource = api.by_plural(version, match["plural"])
    try:
        if match["log"] and resource is POD and request.method == "GET":
            return _log(api, namespace, name, request)
        return json_response(_object(api, resource, namespace, name, request))
    except Refusal as refusal:
        raise Status(403, str(refusal)) from None


def _self_review(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    """A SelfSubjectAccessReview with its status. Google's administrators may do everything."""
    asked = body["spec"]["resourceAttributes"]
    version = f"{asked['group']}/v1" if asked.get("group") else "v1"
    allowed = True
    if isinstance(api, Authorized):
        try:
            api.authorize(asked["verb"], api.by_plural(version, asked["resource"]), asked.get("namespace", ""))
        except Refusal:
            allowed = False
    return body | {"status": {"allowed": allowed}}


def _object(api: Api, resource: Resource, namespace: str, name: str, request: Request) -> Any:
    dry_run = request.query.get("dryRun") == "All"
    if request.method == "GET":
        return api.get(resource, namespace, name) if name else _list(api, resource, namespace, request)
    if request.method == "DELETE":
        return api.delete(resource, namespace, name) or {"kind": "Status", "apiVersion": "v1", "status": "Success"}
    body = _body(request)
    if request.method == "PATCH":
        return api.patch(resource, namespace, name, body, dry_run=dry_run)
    placed = merge({"apiVersion": resource.api_version, "kind": resource.kind}, body)
    if resource.namespaced:
        placed.setdefault("metadata", {}).setdefault("namespace", namespace)
    return api.create(placed, dry_run=dry_run) if request.method == "POST" else api.update(placed, dry_run=dry_run)


def _list(api: Api, resource: Resource, namespace: str, request: Request) -> dict[str, Any]:
    """https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks"""
    terms = [term for term in request.query.get("labelSelector", "").split(",") if term]
    if not all(_TERM.fullmatch(term) for term in terms):
        raise Status(400, "unable to parse requirement: the fake API server knows selectors of the form key=value")
    pairs = {tuple(re.split("==?", term)) for term in terms}
    items = [
        item for item in api.all(resource, namespace) if pairs <= {*(item["metadata"].get("labels") or {}).items()}
    ]
    start, limit = int(request.query.get("continue") or 0), int(request.query.get("limit") or 0) or len(items)
    more = {"continue": str(start + limit)} if start + limit < len(items) else {}
    return {
        "apiVersion": resource.api_version,
        "kind": f"{resource.kind}List",
        "metadata": more,
        "items": items[start : start + limit],
    }


def _log(api: Api, namespace: str, name: str, request: Request) -> Response:
    """What there is of a pod's log. With `follow` a kubelet goes on until the container ends; this ends at once."""
    if isinstance(api, Authorized):
        api.authorize("get", POD, namespace, name, subresource="log")
    text = log_of(
        api,
        Api(api.cloud, api.cluster).get(POD, namespace, name),
        timestamps=request.query.get("timestamps") == "true",
        since=request.query.get("sinceTime", ""),
        tail=int(request.query["tailLines"]) if "tailLines" in request.query else None,
    )
    return Response(body=text.encode("utf-8", errors="surrogateescape"), headers={"Content-Type": "text/plain"})


def _body(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(request.body)
    except ValueError as error:
        raise Status(400, f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise Status(400, "the body is not an object")
    return body
