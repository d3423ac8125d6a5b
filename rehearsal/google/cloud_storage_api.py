"""The calls of Cloud Storage's JSON API that Terraform's `gcs` backend and our programs make, with real preconditions.

https://cloud.google.com/storage/docs/json_api/v1
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote, unquote

import google_crc32c

from rehearsal.cloud import Attributes, Blob, Cloud
from rehearsal.google import permissions
from rehearsal.google.http_access import caller
from rehearsal.http_server import HttpError, Request, Response, json_response

BUCKET = "google_storage_bucket"


class Storage:
    """Serves `/storage/v1/...`, `/upload/storage/v1/...` and, as the Go client reads, `/<bucket>/<object>`."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self._uploads: dict[str, tuple[str, str, Attributes, bytearray]] = {}

    def handle(self, request: Request) -> Response:
        """The answer; raises HttpError."""
        path = request.path.lstrip("/")
        for pattern, serve in (
            (r"(?:storage/v1/)?b", self._buckets),
            (r"(?:storage/v1/)?b/([^/]+)", self._bucket),
            (r"(?:storage/v1/)?b/([^/]+)/o", self._list),
            (r"(?:(?:download/)?storage/v1/)?b/([^/]+)/o/([^/]+)", self._object),
            (r"storage/v1/b/([^/]+)/o/([^/]+)/rewriteTo/b/([^/]+)/o/([^/]+)", self._rewrite),
            (r"upload/storage/v1/b/([^/]+)/o", self._upload),
            (r"([^/]+)/(.+)", self._media),
        ):
            match = re.fullmatch(pattern, path)
            if match is not None:
                return serve(request, *(unquote(part) for part in match.groups()))
        raise HttpError(404, "Not Found")

    def _permit(self, request: Request, permission: str, bucket: str, name: str = "") -> None:
        """Raises HttpError 403. What comes with no token at all is the rehearsal's own.

        https://cloud.google.com/storage/docs/access-control/iam-json
        """
        given = request.headers.get("authorization")
        account = permissions.ADMINISTRATOR if given is None else permissions.account_of(given.removeprefix("Bearer "))
        if account is None:
            raise HttpError(401, "Invalid Credentials")
        resource = f"projects/_/buckets/{bucket}" + (f"/objects/{name}" if name else "")
        project = str(self._attributes(bucket).get("project") or "")
        if permissions.denied(self.cloud, account, permission, resource, project=project):
            raise HttpError(
                403, f"{account} does not have {permission} access to the Google Cloud Storage {resource[11:]}."
            )

    def _permit_in_project(self, account: str, permission: str, project: str) -> None:
        if permissions.denied(self.cloud, account, permission, f"projects/{project}", project=project):
            raise HttpError(403, f"{account} does not have {permission} access to the Google Cloud project.")

    def _attributes(self, bucket: str) -> Attributes:
        attributes = self.cloud.get(BUCKET, bucket)
        if attributes is None:
            raise HttpError(404, "The specified bucket does not exist.")
        return attributes

    def _keeps_old(self, bucket: str) -> bool:
        versioning = self._attributes(bucket).get("versioning") or [{}]
        return bool(versioning[0].get("enabled"))

    def _buckets(self, request: Request) -> Response:
        """https://cloud.google.com/storage/docs/json_api/v1/buckets: list and insert"""
        account, project = caller(request), request.query.get("project", "")
        if request.method == "GET":
            self._permit_in_project(account, "storage.buckets.list", project)
            own = [item.name for item in self.cloud.find(BUCKET) if item.attributes.get("project") == project]
            return json_response({"kind": "storage#buckets", "items": [{"name": name} for name in own]})
        if request.method != "POST":
            raise HttpError(404, "Not Found")
        return self._make(request, account, project)

    def _make(self, request: Request, account: str, project: str) -> Response:
        body = json.loads(request.body or b"{}")
        self._permit_in_project(account, "storage.buckets.create", project)
        with self.cloud.transaction():
            if self.cloud.get(BUCKET, body["name"]) is not None:
                raise HttpError(409, "The requested bucket name is not available.")
            access = body.get("iamConfiguration") or {}
            bucket = {
                "name": body["name"],
                "project": project,
                "location": body.get("location"),
                "uniform_bucket_level_access": bool((access.get("uniformBucketLevelAccess") or {}).get("enabled")),
                "public_access_prevention": access.get("publicAccessPrevention"),
                "versioning": [{"enabled": bool((body.get("versioning") or {}).get("enabled"))}],
            }
            self.cloud.put(BUCKET, body["name"], bucket)
        return json_response({"kind": "storage#bucket", "id": body["name"], **body})

    def _bucket(self, request: Request, bucket: str) -> Response:
        self._permit(request, "storage.buckets.get", bucket)
        attributes = self._attributes(bucket)
        body = {"kind": "storage#bucket", "id": bucket, "name": bucket, "location": attributes.get("location")}
        return json_response(body | {"versioning": {"enabled": self._keeps_old(bucket)}})

    def _list(self, request: Request, bucket: str) -> Response:
        self._permit(request, "storage.objects.list", bucket)
        prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter", "")
        versions = request.query.get("versions", "").lower() == "true"  # Google's own client writes "True"
        items: list[Attributes] = []
        folders: set[str] = set()
        for blob in self.cloud.blobs(bucket, prefix=prefix, generations=versions):
            rest = blob.name[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
            else:
                items.append(_resource(blob))
        return json_response({"kind": "storage#objects", "items": items, "prefixes": sorted(folders)})

    def _object(self, request: Request, bucket: str, name: str) -> Response:
        deletes = request.method == "DELETE"
        self._permit(request, "storage.objects.delete" if deletes else "storage.objects.get", bucket, name)
        if deletes:
            with self.cloud.transaction():
                self._precondition(request, bucket, name)
                self._find(bucket, name, request.query.get("generation"))
                given = request.query.get("generation")
                generation = None if given is None else int(given)
                self.cloud.delete_blob(bucket, name, keep_old=self._keeps_old(bucket), generation=generation)
            return Response(status=204)
        blob = self._find(bucket, name, request.query.get("generation"))
        return _content(blob) if request.query.get("alt") == "media" else json_response(_resource(blob))

    def _rewrite(self, request: Request, source: str, name: str, bucket: str, new_name: str) -> Response:
        """A copy between buckets, in one request. https://cloud.google.com/storage/docs/json_api/v1/objects/rewrite"""
        self._permit(request, "storage.objects.get", source, name)
        self._attributes(bucket)
        self._permit_writing(request, bucket, new_name)
        blob = self._find(source, name, request.query.get("sourceGeneration"))
        written = self._write(request, bucket, new_name, blob.content, blob.metadata)
        size = str(len(blob.content))
        return json_response(
            {
                "kind": "storage#rewriteResponse",
                "done": True,
                "totalBytesRewritten": size,
                "objectSize": size,
                "resource": json.loads(written.body),
            }
        )

    def _media(self, request: Request, bucket: str, name: str) -> Response:
        self._permit(request, "storage.objects.get", bucket, name)
        return _content(self._find(bucket, name, request.query.get("generation")))

    def _find(self, bucket: str, name: str, generation: str | None) -> Blob:
        self._attributes(bucket)
        for blob in self.cloud.blobs(bucket, name=name, generations=generation is not None):
            if generation is None or str(blob.generation) == generation:
                return blob
        raise HttpError(404, f"No such object: {bucket}/{name}")

    def _precondition(self, request: Request, bucket: str, name: str) -> None:
        """`ifGenerationMatch` makes Terraform's lock a lock; 0 means "if there is none".

        https://cloud.google.com/storage/docs/request-preconditions
        """
        expected = request.query.get("ifGenerationMatch")
        live = self.cloud.blobs(bucket, name=name)
        current = str(live[0].generation) if live else "0"
        if expected is not None and expected != current:
            raise HttpError(412, "At least one of the pre-conditions you specified did not hold.")

    def _upload(self, request: Request, bucket: str) -> Response:
        self._attributes(bucket)
        if "upload_id" in request.query:
            return self._resume(request)
        if request.query.get("uploadType") == "resumable":
            metadata = json.loads(request.body or b"{}")
            name = request.query.get("name") or metadata["name"]
            self._permit_writing(request, bucket, name)
            id_ = str(self.cloud.next("upload"))
            self._uploads[id_] = (bucket, name, metadata, bytearray())
            match = request.query.get("ifGenerationMatch")
            condition = f"&ifGenerationMatch={match}" if match else ""
            base = f"http://{request.headers['host']}/upload/storage/v1/b/{quote(bucket)}/o"
            return Response(headers={"Location": f"{base}?uploadType=resumable&upload_id={id_}{condition}"})
        if request.query.get("uploadType") == "multipart":
            metadata, content = _parts(request)
            name = request.query.get("name") or metadata["name"]
            self._permit_writing(request, bucket, name)
            return self._write(request, bucket, name, content, metadata)
        self._permit_writing(request, bucket, request.query["name"])
        return self._write(request, bucket, request.query["name"], request.body, {})

    def _permit_writing(self, request: Request, bucket: str, name: str) -> None:
        """Replacing an object takes the right to delete it as well."""
        self._permit(request, "storage.objects.create", bucket, name)
        if self.cloud.blobs(bucket, name=name):
            self._permit(request, "storage.objects.delete", bucket, name)

    def _resume(self, request: Request) -> Response:
        bucket, name, metadata, content = self._uploads[request.query["upload_id"]]
        if (
            request.method == "DELETE"
        ):  # https://cloud.google.com/storage/docs/performing-resumable-uploads#cancel-upload
            del self._uploads[request.query["upload_id"]]
            return Response(status=499)
        content.extend(request.body)
        if request.headers.get("content-range", "").endswith("/*"):
            return Response(status=308, headers={"Range": f"bytes=0-{len(content) - 1}"})
        del self._uploads[request.query["upload_id"]]
        return self._write(request, bucket, name, bytes(content), metadata)

    def _write(self, request: Request, bucket: str, name: str, content: bytes, metadata: Attributes) -> Response:
        with self.cloud.transaction():
            self._precondition(request, bucket, name)
            kept: Attributes = {key: metadata[key] for key in ("contentType", "metadata") if key in metadata}
            blob = self.cloud.put_blob(bucket, name, content, kept, keep_old=self._keeps_old(bucket))
        return json_response(_resource(blob))


def _parts(request: Request) -> tuple[Attributes, bytes]:
    """Metadata and content of a multipart/related upload."""
    boundary = re.search(r'boundary="?([^";]+)"?', request.headers.get("content-type", ""))
    if boundary is None:
        raise HttpError(400, "multipart upload without a boundary")
    parts = request.body.split(b"--" + boundary.group(1).encode())[1:3]
    metadata, content = (part.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n") for part in parts)
    return json.loads(metadata), content


def _resource(blob: Blob) -> dict[str, Any]:
    when = datetime.fromtimestamp(blob.created, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "kind": "storage#object",
        "id": f"{blob.bucket}/{blob.name}/{blob.generation}",
        "name": blob.name,
        "bucket": blob.bucket,
        "generation": str(blob.generation),
        "metageneration": "1",
        "size": str(len(blob.content)),
        "crc32c": base64.b64encode(google_crc32c.Checksum(blob.content).digest()).decode(),  # type: ignore[no-untyped-call]
        "md5Hash": base64.b64encode(hashlib.md5(blob.content, usedforsecurity=False).digest()).decode(),
        "timeCreated": when,
        "updated": when,
        **blob.metadata,
    }


def _content(blob: Blob) -> Response:
    headers = {
        "Content-Type": str(blob.metadata.get("contentType", "application/octet-stream")),
        "X-Goog-Generation": str(blob.generation),
        "X-Goog-Metageneration": "1",
        "Last-Modified": datetime.fromtimestamp(blob.created, timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT"),
    }
    return Response(body=blob.content, headers=headers)
