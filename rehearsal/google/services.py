"""The other Google services: Artifact Registry and Vertex AI."""

from __future__ import annotations

from rehearsal.google.artifact_registry_api import REPOSITORY, delete_images
from rehearsal.google.errors import not_found, require
from rehearsal.google.iam import member_resource
from rehearsal.google.locations import region_exists
from rehearsal.google.resource import Change, GoogleResource, Reference, matches


def cleanup_policies_are_complete(change: Change) -> None:
    """DELETE takes a condition, KEEP a condition or a number of versions.

    https://cloud.google.com/artifact-registry/docs/repositories/cleanup-policy
    """
    for policy in change.values.get("cleanup_policies") or []:
        complete = policy.get("action") != "DELETE" or policy.get("condition")
        require(complete, f"Cleanup policy '{policy['id']}' of action DELETE needs a condition")


RESOURCE_TYPES = (
    GoogleResource(
        type_=REPOSITORY,
        checks=(
            # https://cloud.google.com/artifact-registry/docs/repositories/create-repos
            matches("repository_id", r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?", "Invalid repository_id '{}'"),
            cleanup_policies_are_complete,
        ),
        computed=lambda change: {"name": change.values["repository_id"]},
        deleted=delete_images,
    ),
    member_resource(
        "google_artifact_registry_repository_iam_member",
        # https://cloud.google.com/artifact-registry/docs/access-control
        Reference(
            attribute="repository",
            type_=REPOSITORY,
            missing=lambda name: not_found(f'Requested entity was not found: "{name}"'),
        ),
    ),
    GoogleResource(
        type_="google_vertex_ai_tensorboard",
        checks=(region_exists,),
        computed=lambda change: {"name": change.name},
    ),
)
