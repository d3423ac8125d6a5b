"""Buckets, and who may use them."""

from __future__ import annotations

import re

from rehearsal.cloud import Attributes
from rehearsal.google.errors import invalid, not_found, require
from rehearsal.google.iam import member_resource
from rehearsal.google.resource import Change, GoogleResource, Reference, matches
from rehearsal.terraform.resource_type import Refusal
from rehearsal.terraform.values import value_at

BUCKET = "google_storage_bucket"

PROTECTED_BUCKET = "Error trying to delete bucket {} containing objects without `force_destroy` set to true"


def bucket_name_is_valid(change: Change) -> None:
    """3 to 63 lower-case letters, digits, dashes, underscores, or several such parts with dots; never "google".

    https://cloud.google.com/storage/docs/buckets#naming
    """
    name = str(change.values["name"])
    characters = re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", name) and not re.fullmatch(r"[\d.]+", name)
    lengths = all(0 < len(part) <= 63 for part in name.split("."))
    reserved = name.startswith("goog") or "google" in name
    require(characters and lengths and not reserved, f"Invalid bucket name: '{name}'", invalid)


def hierarchical_namespace_fits(change: Change) -> None:
    """Folders need uniform access and exclude versions and retention.

    https://cloud.google.com/storage/docs/hns-overview#limitations
    """
    values = change.values
    if not value_at(values, "hierarchical_namespace.enabled"):
        return
    uniform = values.get("uniform_bucket_level_access") is True
    require(uniform, "Hierarchical namespace requires uniform bucket-level access.", invalid)
    for attribute, word in (
        ("versioning.enabled", "object versioning"),
        ("retention_policy.retention_period", "a bucket retention policy"),
    ):
        absent = not value_at(values, attribute)
        require(absent, f"Hierarchical namespace buckets do not support {word}.", invalid)


def bucket_is_empty(change: Change) -> None:
    """Only a bucket whose `force_destroy` is true, as last applied, is emptied by destroying it.

    https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/resources/storage_bucket#force_destroy
    """
    forced = (change.prior or {}).get("force_destroy") is True
    if not forced and change.client.cloud.blobs(change.name, generations=True):
        raise Refusal(PROTECTED_BUCKET.format(change.name))


def delete_contents(change: Change) -> None:
    """What is in a bucket, and who may use it, is deleted with it."""
    cloud = change.client.cloud
    for blob in cloud.blobs(change.name, generations=True):
        cloud.delete_blob(blob.bucket, blob.name, keep_old=False, generation=blob.generation)
    for member in cloud.find("google_storage_bucket_iam_member", prefix=f"{change.name}/"):
        cloud.delete(member.kind, member.name)


def bucket_values(change: Change) -> Attributes:
    """The server's part of a bucket. https://cloud.google.com/storage/docs/json_api/v1/buckets#resource"""
    name = change.name
    project = change.get("project", f"projects/{change.project}") or {}
    return {
        "id": name,
        "url": f"gs://{name}",
        "self_link": f"https://www.googleapis.com/storage/v1/b/{name}",
        "project_number": int(project.get("number", 0)),
        "storage_class": "STANDARD",
        "public_access_prevention": "inherited",
        "rpo": "DEFAULT",
        "soft_delete_policy": [{"effective_time": "2026-01-01T00:00:00.000Z", "retention_duration_seconds": 604800}],
    }


RESOURCE_TYPES = (
    GoogleResource(
        type_=BUCKET,
        checks=(
            bucket_name_is_valid,
            # A region, dual region or multi-region. https://cloud.google.com/storage/docs/locations
            matches(
                "location",
                r"(?i)[a-z]+-[a-z]+\d+|us|eu|asia|nam4|eur[457]|asia1",
                "The specified location constraint is not valid: '{}'",
                invalid,
            ),
            hierarchical_namespace_fits,
        ),
        removal=(bucket_is_empty,),
        computed=bucket_values,
        state_only=("force_destroy",),
        deleted=delete_contents,
    ),
    member_resource(
        "google_storage_bucket_iam_member",
        # https://cloud.google.com/storage/docs/json_api/v1/status-codes#404-not-found
        Reference(
            attribute="bucket", type_=BUCKET, missing=lambda _: not_found("The specified bucket does not exist.")
        ),
    ),
)
