"""The list methods of Google's APIs over HTTP, for types whose ids the server gives: to find an object by its name.

vocabulary/resource_types says under "listing" which types these are, and what a list returns.
"""

from __future__ import annotations

import re
from typing import Any

from rehearsal.cloud import Cloud
from rehearsal.google.http_access import caller, permit
from rehearsal.google.resource import PROJECT
from rehearsal.http_server import HttpError, Request, Response, json_response
from vocabulary.resource_types import Listing, all_types, facts_of

# Fewer than there are, so that a client has to follow nextPageToken.
_PAGE = 2


def _listed() -> dict[str, tuple[re.Pattern[str], Listing]]:
    """By type: the path of its list method, with the full name of what the objects are in, and what it returns."""
    listed = {}
    for type_ in all_types():
        if listing := facts_of(type_).listing:
            collection = re.sub(r"\{\w+\}", "[^/]+", facts_of(type_).collection)
            listed[type_] = re.compile(f"/{listing.version}/({collection})"), listing
    return listed


_LISTED = _listed()


def serves(path: str) -> bool:
    """Whether a request to that path lists objects."""
    return any(pattern.fullmatch(path) for pattern, _ in _LISTED.values())


def serve(cloud: Cloud, request: Request) -> Response:
    """The answer, a page of two at a time; raises HttpError."""
    for type_, (pattern, listing) in _LISTED.items():
        match = pattern.fullmatch(request.path)
        if match and request.method == "GET":
            return json_response(_page(cloud, request, type_, listing, collection=match[1]))
    raise HttpError(404, "Not Found")


def _page(cloud: Cloud, request: Request, type_: str, listing: Listing, *, collection: str) -> dict[str, Any]:
    project, parent = collection.split("/")[1], collection.rpartition("/")[0]
    permit(cloud, caller(request), listing.permission, parent, project=project)
    objects = cloud.find(type_, prefix=f"{collection}/")
    start = int(request.query.get("pageToken") or 0)
    number = str((cloud.get(PROJECT, f"projects/{project}") or {}).get("number", project))
    items = [
        {
            # In a full name Google writes the project's number.
            listing.id_: re.sub(r"^projects/[^/]+", f"projects/{number}", item.name)
            if listing.id_ == "name"
            else item.name.rpartition("/")[2],
            listing.field: listing.chosen(item.attributes),
        }
        for item in objects[start : start + _PAGE]
    ]
    more = {"nextPageToken": str(start + _PAGE)} if start + _PAGE < len(objects) else {}
    return {listing.items: items, **more}
