"""Images in the fake registries, and the REST method that says which one a tag names. Nothing here builds an image.

https://cloud.google.com/artifact-registry/docs/reference/rest/v1/projects.locations.repositories.packages.tags/get
"""

from __future__ import annotations

import hashlib
import re

from rehearsal.cloud import Cloud
from rehearsal.google.http_access import caller, permit
from rehearsal.google.resource import Change
from rehearsal.http_server import HttpError, Request, Response, json_response

REPOSITORY = "google_artifact_registry_repository"
IMAGE = "artifact_registry_image"  # by the full name of its tag

_REFERENCE = re.compile(r"([^/]+)-docker\.pkg\.dev/([^/]+)/([^/]+)/([^:@]+):([^:@/]+)")
_GET_REPOSITORY = re.compile(r"/v1/(projects/([^/]+)/locations/[^/]+/repositories/[^/]+)")
_GET_TAG = re.compile(_GET_REPOSITORY.pattern + r"(/packages/[^/]+)/tags/([^/]+)")


def push(cloud: Cloud, reference: str) -> None:
    """Counts the image as pushed: `reference` is `{region}-docker.pkg.dev/{project}/{repository}/{image}:{tag}`.

    Its digest is made from the reference, so it is the same every time and that of no real image. Raises ValueError
    for another reference.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise ValueError(f"{reference!r} is not an image with a tag in Artifact Registry")
    region, project, repository, image, tag = match.groups()
    name = f"projects/{project}/locations/{region}/repositories/{repository}/packages/{image}/tags/{tag}"
    cloud.put(IMAGE, name, {"digest": f"sha256:{hashlib.sha256(reference.encode()).hexdigest()}"})


def delete_images(change: Change) -> None:
    """A repository is deleted with what is in it."""
    cloud = change.client.cloud
    for image in cloud.find(IMAGE, prefix=f"{change.name}/"):
        cloud.delete(image.kind, image.name)


def serves(path: str) -> bool:
    """Whether a request to that path is about a registry."""
    return bool(_GET_TAG.fullmatch(path) or _GET_REPOSITORY.fullmatch(path))


def serve(cloud: Cloud, request: Request) -> Response:
    """A tag or a repository; raises HttpError."""
    account = caller(request)
    if request.method == "GET" and (match := _GET_TAG.fullmatch(request.path)):
        repository, project, package, tag = match.groups()
        permit(cloud, account, "artifactregistry.tags.get", repository, project=project)
        image = cloud.get(IMAGE, f"{repository}{package}/tags/{tag}")
        if image is not None:
            name = f"{repository}{package}"
            return json_response({"name": f"{name}/tags/{tag}", "version": f"{name}/versions/{image['digest']}"})
    elif request.method == "GET" and (match := _GET_REPOSITORY.fullmatch(request.path)):
        repository, project = match.groups()
        permit(cloud, account, "artifactregistry.repositories.get", repository, project=project)
        if cloud.get(REPOSITORY, repository) is not None:
            return json_response({"name": repository, "format": "DOCKER"})
    raise HttpError(404, "Requested entity was not found.")
