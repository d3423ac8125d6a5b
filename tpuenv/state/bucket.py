"""The bucket that holds Terraform's state: its objects, and how it is created or corrected."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NoReturn

from google.api_core.exceptions import Conflict, Forbidden, NotFound
from google.cloud.storage import Bucket

from environment.names import Names
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients, is_switched_off
from tpuenv.google.storage import BucketObjects

_ROLE = "roles/storage.admin"

# Every apply writes several versions of a state, so a count alone could lose last week's; both conditions must hold.
# https://cloud.google.com/storage/docs/lifecycle#conditions
KEPT_VERSIONS = 30
KEPT_DAYS = 30
LIFECYCLE: dict[str, Any] = {
    "action": {"type": "Delete"},
    "condition": {"numNewerVersions": KEPT_VERSIONS, "daysSinceNoncurrentTime": KEPT_DAYS},
}

_NEW = (
    f"versioned (old versions: the last {KEPT_VERSIONS}, and all of the last {KEPT_DAYS} days), uniform access, "
    "public access prevented"
)


def state_objects(clients: Clients, names: Names) -> BucketObjects:
    """The objects in the environment's state bucket."""
    return BucketObjects(
        clients=clients,
        name=names.state_bucket,
        if_missing=f"No state bucket: gs://{names.state_bucket} does not exist. If it existed before, do not create "
        "another: `tpuenv recover` says how to restore it. Only in a project that never had one, an administrator "
        "creates it: `tpuenv bootstrap`",
    )


def ensure_state_bucket(
    clients: Clients,
    *,
    name: str,
    region: str,
    labels: dict[str, str],
    project_number: str,
    dry_run: bool,
    replace_deleted: bool,
) -> list[str]:
    """Creates or corrects the bucket; what was done (with `dry_run`: would be), a line each.

    Raises Failed; also where Google can restore a deleted bucket of the name, unless `replace_deleted`.
    """
    bucket = _read(clients, name)
    if bucket is None and not replace_deleted:
        _refuse_to_replace(clients, name)
    if bucket is None and dry_run:
        return [f"created bucket {name} in {region}: {_NEW}"]
    if bucket is None:
        if _create(clients, name, region, labels):
            return [f"created bucket {name} in {region}: {_NEW}"]
        bucket = _read(clients, name) or _refuse(name)
    if str(bucket.project_number) != project_number:
        _refuse(name)
    if bucket.location.lower() != region:
        clients.say(f"note: bucket {name} is in {bucket.location}, not in REGION {region}; which does no harm")
    return _correct(clients, bucket, labels, dry_run)


def _read(clients: Clients, name: str) -> Bucket | None:
    with clients.asking(f"read bucket {name}", permission="storage.buckets.get", role=_ROLE):
        try:
            return clients.storage.get_bucket(name, retry=clients.retry, timeout=clients.patience.answer)
        except NotFound:
            return None
        except Forbidden as error:
            if is_switched_off(error) or name in _names_in_project(clients, name):
                raise
            _refuse(name)


def _names_in_project(clients: Clients, prefix: str) -> list[str]:
    """A bucket that may not be read is of another project, unless it is in the project's own list."""
    with clients.asking("list the buckets", permission="storage.buckets.list", role=_ROLE):
        buckets = clients.storage.list_buckets(prefix=prefix, retry=clients.retry, timeout=clients.patience.answer)
        return [bucket.name for bucket in buckets]


def _refuse_to_replace(clients: Clients, name: str) -> None:
    """A deleted bucket can be restored until there is another of its name.

    https://cloud.google.com/storage/docs/use-soft-deleted-buckets
    """
    with clients.asking("list the deleted buckets", permission="storage.buckets.list", role=_ROLE):
        buckets = clients.storage.list_buckets(
            prefix=name, soft_deleted=True, retry=clients.retry, timeout=clients.patience.answer
        )
        deleted = [bucket for bucket in buckets if bucket.name == name and bucket.generation]
    if deleted:
        last = max(deleted, key=lambda bucket: bucket.generation)
        raise Failed(
            f"TF_STATE_BUCKET: '{name}' was deleted{_at(last.soft_delete_time)}, and Google has it with all states "
            f"until{_at(last.hard_delete_time) or ' some days after that'}; restore it:\n"
            f"  gcloud storage restore gs://{name}#{last.generation}\n"
            "To have an empty one instead, and lose those states for good: tpuenv bootstrap --new-bucket"
        )


def _at(time: datetime | None) -> str:
    return f" {time:%Y-%m-%d %H:%M} UTC" if time else ""


def _create(clients: Clients, name: str, region: str, labels: dict[str, str]) -> bool:
    """False if by now the bucket exists: created by another run, or by a request of ours whose answer was lost."""
    bucket = clients.storage.bucket(name)
    bucket.storage_class = "STANDARD"
    bucket.versioning_enabled = True
    bucket.iam_configuration.uniform_bucket_level_access_enabled = True
    bucket.iam_configuration.public_access_prevention = "enforced"
    bucket.lifecycle_rules = [LIFECYCLE]
    bucket.labels = labels
    with clients.asking(f"create bucket {name}", permission="storage.buckets.create", role=_ROLE):
        try:
            clients.storage.create_bucket(bucket, location=region, retry=clients.retry, timeout=clients.patience.answer)
        except Conflict:
            return False
    return True


def _correct(clients: Clients, bucket: Bucket, labels: dict[str, str], dry_run: bool) -> list[str]:
    """Turns on what keeps the state safe. Lifecycle rules and labels that somebody set stay as they are."""
    changes = []
    access = bucket.iam_configuration
    if not bucket.versioning_enabled:
        bucket.versioning_enabled = True
        changes.append("turned on versioning")
    if not access.uniform_bucket_level_access_enabled:
        access.uniform_bucket_level_access_enabled = True
        changes.append("turned on uniform bucket-level access")
    if access.public_access_prevention != "enforced":
        access.public_access_prevention = "enforced"
        changes.append("enforced public access prevention")
    if not list(bucket.lifecycle_rules):
        bucket.lifecycle_rules = [LIFECYCLE]
        changes.append(f"set old versions to be kept: the last {KEPT_VERSIONS}, and all of the last {KEPT_DAYS} days")
    if missing := {key: value for key, value in labels.items() if key not in bucket.labels}:
        bucket.labels = bucket.labels | missing
        changes.append("added labels " + ", ".join(f"{key}={value}" for key, value in missing.items()))
    if changes and not dry_run:
        with clients.asking(f"change bucket {bucket.name}", permission="storage.buckets.update", role=_ROLE):
            bucket.patch(retry=clients.retry, timeout=clients.patience.answer)
    return [f"{change} of bucket {bucket.name}" for change in changes]


def _refuse(name: str) -> NoReturn:
    raise Failed(
        f"TF_STATE_BUCKET: '{name}' belongs to another project; bucket names are shared by all of Google Cloud, so set "
        "TF_STATE_BUCKET to a name of your own"
    )
