"""Images in Artifact Registry: which digest a tag names."""

from __future__ import annotations

import re
from contextlib import suppress

import requests
from google.api_core.exceptions import NotFound

from tpuenv.failure import Failed
from tpuenv.google.clients import Clients

_HOST = "artifactregistry.googleapis.com"
_ROLE = "roles/artifactregistry.reader"
_DIGEST = re.compile(r"/sha256:[0-9a-f]{64}\Z")
_REFERENCE = re.compile(r"(([a-z0-9-]+)-docker\.pkg\.dev/([^/]+)/([^/]+)/([^/:@]+)):([A-Za-z0-9_][\w.-]*)")


def by_digest(clients: Clients, reference: str) -> str | None:
    """The image of `{region}-docker.pkg.dev/{project}/{repository}/{image}:{tag}` as `...{image}@sha256:...`; None
    where the registry has no such tag.

    Raises Failed where Google refuses or does not answer, and where there is no such registry. Raises ValueError for
    another reference.
    https://cloud.google.com/artifact-registry/docs/reference/rest/v1/projects.locations.repositories.packages.tags/get
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise ValueError(f"{reference!r} is not an image with a tag in Artifact Registry")
    image, region, project, repository, package, tag = match.groups()
    registry = f"{clients.api_url(_HOST)}/v1/projects/{project}/locations/{region}/repositories/{repository}"
    get = clients.retry(clients.request)
    with (
        clients.asking(f"read image {reference}", permission="artifactregistry.tags.get", role=_ROLE),
        suppress(NotFound),
    ):
        version = _version(get("GET", f"{registry}/packages/{package}/tags/{tag}"))
        if version is None:
            raise Failed(f"registry: Google's answer about image {reference} names no version; run this again")
        return f"{image}@{version.rpartition('/')[2]}"
    with clients.asking(f"read registry {repository}", permission="artifactregistry.repositories.get", role=_ROLE):
        try:
            get("GET", registry)
        except NotFound:
            raise Failed(
                f"registry: '{repository}' does not exist in project '{project}', region '{region}'; "
                "`tpuenv deploy foundation` creates it"
            ) from None
    return None


def _version(answer: requests.Response) -> str | None:
    """The name of the version that a tag names; None where the answer does not say it."""
    try:
        version = answer.json()["version"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    return version if isinstance(version, str) and _DIGEST.search(version) else None
