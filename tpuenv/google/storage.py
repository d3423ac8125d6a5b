"""Objects of a Cloud Storage bucket: read, written, deleted and listed; a refusal names the role that allows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from google.api_core.exceptions import Forbidden, NotFound, PreconditionFailed
from google.cloud.storage import Blob

from tpuenv.failure import Failed
from tpuenv.google.clients import Clients

# https://cloud.google.com/storage/docs/access-control/iam-roles
_ROLE = "roles/storage.objectUser"
ABSENT = 0  # for `write`: the generation of an object that does not exist


class NoBucket(Failed):
    """The bucket does not exist."""


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """The content of an object, and its generation: Cloud Storage's number of this version and of no later one."""

    content: bytes
    generation: int


@dataclass(frozen=True, kw_only=True)
class BucketObjects:
    """The objects of a bucket. `if_missing` says what to do where there is no such bucket.

    `what` is the purpose of a request in a few words, for the message if Google refuses it. Every method raises Failed.
    """

    clients: Clients
    name: str
    if_missing: str

    def read(self, object_name: str, *, what: str, generation: int | None = None) -> StoredObject | None:
        """The object's present version, or the one of that generation; None where there is none."""
        with self._asking(what, "get"):
            try:
                blob = self._blob(object_name, generation)
                content = blob.download_as_bytes(retry=self.clients.retry, timeout=self.clients.patience.answer)
            except NotFound as error:
                if "bucket does not exist" in str(error):
                    raise NoBucket(self.if_missing) from error
                return None
        return StoredObject(content=content, generation=int(blob.generation))

    def create(self, object_name: str, content: str, *, what: str) -> bool:
        """Writes a new object, as JSON. False where there is one of that name, whether or not it may be replaced."""
        try:
            return self.write(object_name, content, what=what, over=ABSENT)
        except Failed as refused:
            # Without the right to delete objects, that is what Cloud Storage refuses where one is to be replaced.
            # https://cloud.google.com/storage/docs/access-control/iam-json
            if isinstance(refused.__cause__, Forbidden) and "storage.objects.delete" in str(refused.__cause__):
                return False
            raise

    def write(self, object_name: str, content: str, *, what: str, over: int | None = None) -> bool:
        """Writes the whole object, as JSON. With `over`, only over that generation, else False."""
        with self._asking(what, "create"):
            try:
                self._blob(object_name).upload_from_string(
                    content,
                    content_type="application/json",
                    if_generation_match=over,
                    retry=self.clients.retry,
                    timeout=self.clients.patience.answer,
                )
            except PreconditionFailed:
                return False
            except NotFound as error:
                raise NoBucket(self.if_missing) from error
        return True

    def delete(self, object_name: str, *, what: str, generation: int | None = None) -> bool:
        """Deletes the object, or only its version of that generation. False where that is not the present one."""
        with self._asking(what, "delete"):
            try:
                self._blob(object_name).delete(
                    if_generation_match=generation, retry=self.clients.retry, timeout=self.clients.patience.answer
                )
            except (NotFound, PreconditionFailed):
                return False
        return True

    def list_objects(self, prefix: str, *, what: str, versions: bool = False) -> list[Blob]:
        """The objects whose names begin with `prefix`; with `versions` also those that were replaced or deleted."""
        with self._asking(what, "list"):
            return list(
                self.clients.storage.list_blobs(
                    self.clients.storage.bucket(self.name),
                    prefix=prefix,
                    versions=versions,
                    retry=self.clients.retry,
                    timeout=self.clients.patience.answer,
                )
            )

    def bucket_exists(self) -> bool:
        """Who may use a bucket may list it, but need not be allowed to read the bucket itself."""
        with self._asking("list the objects", "list"):
            try:
                blobs = self.clients.storage.list_blobs(
                    self.clients.storage.bucket(self.name),
                    max_results=1,
                    retry=self.clients.retry,
                    timeout=self.clients.patience.answer,
                )
                next(iter(blobs), None)
            except NotFound:
                return False
        return True

    def _blob(self, object_name: str, generation: int | None = None) -> Blob:
        return self.clients.storage.bucket(self.name).blob(object_name, generation=generation)

    @contextmanager
    def _asking(self, what: str, verb: str) -> Iterator[None]:
        with self.clients.asking(f"{what} in gs://{self.name}", permission=f"storage.objects.{verb}", role=_ROLE):
            yield
