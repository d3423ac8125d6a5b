"""Buckets, what is in them, and who may."""

from __future__ import annotations

import re

from rehearsal.cloud import Attributes
from rehearsal.google.iam import MEMBER_CHECKS, member_resource
from rehearsal.google.resource import ApiError, Change, GoogleResource, one
from rehearsal.terraform.resource_type import Refusal

STORAGE = "storage.googleapis.com"
BUCKET = "google_storage_bucket"
FOLDER = "google_storage_managed_folder"

PROTECTED_BUCKET = "Error trying to delete bucket {} containing objects without `force_destroy` set to true"


def bucket_name_is_valid(change: Change) -> None:
    """3 to 63 lower-case letters, digits, dashes, underscores; never "google".

    https://cloud.google.com/storage/docs/buckets#naming
    """
    name = str(change.values["name"])
    parts = name.split(".")
    good = re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", name) and all(0 < len(part) <= 63 for part in parts)
    if not good or name.startswith("goog") or "google" in name or re.fullmatch(r"[\d.]+", name):
        raise ApiError(400, f"Invalid bucket name: '{name}'", "invalid")


def bucket_location_is_given(change: Change) -> None:
    """A region, dual region or multi-region. https://cloud.google.com/storage/docs/locations"""
    location = str(change.values["location"]).lower()
    if not re.fullmatch(r"[a-z]+-[a-z]+\d+|us|eu|asia|nam4|eur[457]|asia1", location):
        raise ApiError(400, f"The specified location constraint is not valid: '{change.values['location']}'", "invalid")


def hierarchical_namespace_fits(change: Change) -> None:
    """Folders need uniform access and exclude versions, retention and soft links to them.

    https://cloud.google.com/storage/docs/hns-overview#limitations
    """
    values = change.values
    if not one(values, "hierarchical_namespace").get("enabled"):
        return
    if values.get("uniform_bucket_level_access") is not True:
        raise ApiError(400, "Hierarchical namespace requires uniform bucket-level access.", "invalid")
    for block, word in (("versioning", "object versioning"), ("retention_policy", "a bucket retention policy")):
        if one(values, block).get("enabled" if block == "versioning" else "retention_period"):
            raise ApiError(400, f"Hierarchical namespace buckets do not support {word}.", "invalid")


def bucket_is_empty(change: Change) -> None:
    """Only a bucket whose `force_destroy` is true, as last applied, is emptied by destroying it.

    https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/resources/storage_bucket#force_destroy
    """
    name = change.name
    cloud = change.client.cloud
    if not cloud.blobs(name, generations=True) and not cloud.find("google_storage_bucket_object", prefix=f"{name}/"):
        return
    if (change.prior or {}).get("force_destroy") is not True:
        raise Refusal(PROTECTED_BUCKET.format(name))


def empty(change: Change) -> None:
    """What is in a bucket goes with it."""
    cloud = change.client.cloud
    for blob in cloud.blobs(change.name, generations=True):
        cloud.delete_blob(blob.bucket, blob.name, keep_old=False, generation=blob.generation)
    for kind in ("google_storage_bucket_object", FOLDER, "google_storage_bucket_iam_member"):
        for item in cloud.find(kind, prefix=f"{change.name}/"):
            cloud.delete(kind, item.name)


def bucket_exists(change: Change) -> None:
    """https://cloud.google.com/storage/docs/json_api/v1/status-codes#404-not-found"""
    name = str(change.values["bucket"]).removeprefix("b/")
    if change.get(BUCKET, name) is None:
        raise ApiError(404, "The specified bucket does not exist.", "notFound")


def folder_exists(change: Change) -> None:
    """https://cloud.google.com/storage/docs/managed-folders"""
    name = f"{change.values['bucket']}/managedFolders/{str(change.values['managed_folder']).strip('/')}"
    if change.get(FOLDER, name) is None:
        raise ApiError(404, f"The specified managed folder does not exist: {name}", "notFound")


def folders_need_uniform_access(change: Change) -> None:
    """https://cloud.google.com/storage/docs/managed-folders#limitations"""
    bucket = change.get(BUCKET, str(change.values["bucket"])) or {}
    if bucket.get("uniform_bucket_level_access") is not True:
        raise ApiError(400, "Managed folders require uniform bucket-level access.", "invalid")


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
        path="{name}",
        word="bucket",
        service=STORAGE,
        exists="The requested bucket name is not available. The bucket namespace is shared by all users of the system.",
        checks=(bucket_name_is_valid, bucket_location_is_given, hierarchical_namespace_fits),
        removal=(bucket_is_empty,),
        computed=bucket_values,
        state_only=("force_destroy",),
        gone=empty,
    ),
    GoogleResource(
        type_="google_storage_bucket_object",
        path="{bucket}/{name}",
        word="object",
        service=STORAGE,
        checks=(bucket_exists,),
        merges=True,
        state_only=("source", "detect_md5hash", "source_md5hash"),
    ),
    GoogleResource(
        type_=FOLDER,
        path="{bucket}/managedFolders/{name}",
        word="ManagedFolder",
        service=STORAGE,
        checks=(bucket_exists, folders_need_uniform_access),
        state_only=("force_destroy",),
    ),
    member_resource(
        "google_storage_bucket_iam_member",
        "{bucket}/{role}/{member}",
        word="Storage Bucket",
        service=STORAGE,
        checks=(bucket_exists, *MEMBER_CHECKS),
    ),
    member_resource(
        "google_storage_managed_folder_iam_member",
        "{bucket}/{managed_folder}/{role}/{member}",
        word="Storage ManagedFolder",
        service=STORAGE,
        checks=(bucket_exists, folder_exists, *MEMBER_CHECKS),
    ),
)
