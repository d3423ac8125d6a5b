"""The lists of Vertex AI and Cloud Build over HTTP: objects whose ids the server gave, looked up by their names.

https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.tensorboards/list
https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.triggers/list
"""

from __future__ import annotations

import re
from typing import Any

from rehearsal.cloud import Cloud, Object
from rehearsal.google.access import caller, permit
from rehearsal.google.resource import PROJECT
from rehearsal.http_server import HttpError, Request, Response, json_response

PATH = re.compile(r"/v1/projects/([^/]+)/locations/([^/]+)/(tensorboards|triggers)")

_KINDS = {"tensorboards": "google_vertex_ai_tensorboard", "triggers": "google_cloudbuild_trigger"}
_PERMISSIONS = {"tensorboards": "aiplatform.tensorboards.list", "triggers": "cloudbuild.builds.list"}

# Fewer than there are, so that a client has to follow nextPageToken.
_PAGE = 2


def serve(cloud: Cloud, request: Request) -> Response:
    """The answer, a page of two at a time; raises HttpError."""
    match = PATH.fullmatch(request.path)
    if match is None or request.method != "GET":
        raise HttpError(404, "Not Found")
    project, location, collection = match.groups()
    parent = f"projects/{project}/locations/{location}"
    permit(cloud, caller(request), _PERMISSIONS[collection], parent, project=project)
    objects = cloud.find(_KINDS[collection], prefix=f"{parent}/{collection}/")
    start = int(request.query.get("pageToken") or 0)
    number = str((cloud.get(PROJECT, f"projects/{project}") or {}).get("number", project))
    body: dict[str, Any] = {collection: [_item(item, number) for item in objects[start : start + _PAGE]]}
    if start + _PAGE < len(objects):
        body["nextPageToken"] = str(start + _PAGE)
    return json_response(body)


def _item(item: Object, number: str) -> dict[str, Any]:
    """Vertex AI names a project by its number; Cloud Build's `name` is the one that a person chose."""
    attributes = item.attributes
    if item.kind == _KINDS["tensorboards"]:
        name = re.sub(r"^projects/[^/]+", f"projects/{number}", item.name)
        return {"name": name, "displayName": attributes.get("display_name")}
    return {"id": attributes.get("trigger_id"), "name": attributes.get("name"), "resourceName": item.name}
