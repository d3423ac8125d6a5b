"""The lists of Vertex AI and Cloud Build over HTTP: objects whose ids the server gave, to be found by their names.

https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.tensorboards/list
https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.triggers/list
"""

from __future__ import annotations

import re
from typing import Any

from rehearsal.cloud import Cloud, Object
from rehearsal.google import identity
from rehearsal.google.resource import PROJECT
from rehearsal.http_server import HttpError, Request, Response, json_response

PATH = re.compile(r"/v1/projects/([^/]+)/locations/([^/]+)/(tensorboards|triggers)")

_KINDS = {"tensorboards": "google_vertex_ai_tensorboard", "triggers": "google_cloudbuild_trigger"}
_PERMISSIONS = {"tensorboards": "aiplatform.tensorboards.list", "triggers": "cloudbuild.builds.list"}

# Fewer than anybody has at once, so that whoever asks has to turn the page.
_PAGE = 2


def serve(cloud: Cloud, request: Request) -> Response:
    """The answer, a page of two at a time; raises HttpError."""
    match = PATH.fullmatch(request.path)
    if match is None or request.method != "GET":
        raise HttpError(404, "Not Found")
    project, location, collection = match.groups()
    account = identity.account_of(request.headers.get("authorization", "").removeprefix("Bearer "))
    if account is None:
        raise HttpError(401, "Request had invalid authentication credentials.")
    parent = f"projects/{project}/locations/{location}"
    if why := identity.denied(cloud, account, _PERMISSIONS[collection], parent, project=project):
        raise HttpError(403, why)
    found = cloud.find(_KINDS[collection], prefix=f"{parent}/{collection}/")
    start = int(request.query.get("pageToken") or 0)
    number = str((cloud.get(PROJECT, f"projects/{project}") or {}).get("number", project))
    body: dict[str, Any] = {collection: [_item(each, number) for each in found[start : start + _PAGE]]}
    if start + _PAGE < len(found):
        body["nextPageToken"] = str(start + _PAGE)
    return json_response(body)


def _item(found: Object, number: str) -> dict[str, Any]:
    """Vertex AI names a project by its number; Cloud Build's `name` is the one that a person chose."""
    attributes = found.attributes
    if found.kind == _KINDS["tensorboards"]:
        name = re.sub(r"^projects/[^/]+", f"projects/{number}", found.name)
        return {"name": name, "displayName": attributes.get("display_name")}
    return {"id": attributes.get("trigger_id"), "name": attributes.get("name"), "resourceName": found.name}
