"""Google as a pod of a team meets it: two buckets of the fake Cloud Storage with its IAM, and a metadata server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rehearsal import http_server
from rehearsal.cloud import Cloud
from rehearsal.google.cloud_storage_api import BUCKET
from rehearsal.google.permissions import ROLE, token_of
from rehearsal.http_server import Request, Response, json_response
from rehearsal.serve import answers

POD = "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p.svc.id.goog/subject/ns/a/sa/b"
TOKEN_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"


class Google:
    """Buckets `own`, which the pod may use, and `other`; and the metadata server of the pod's node.

    A function in `before` sees each request to Cloud Storage first, and may answer it.
    """

    def __init__(self, folder: Path) -> None:
        self.cloud = Cloud(folder / "cloud.db")
        for bucket in ("own", "other"):
            self.cloud.put(BUCKET, bucket, {"name": bucket, "project": "p"})
        self.grant("own")
        self.token = json_response({"access_token": token_of(POD)})
        self.asked_for_tokens: list[Request] = []
        self.before: list[Callable[[Request], Response | None]] = []
        storage = answers(self.cloud)

        def answer(request: Request) -> Response:
            if request.path == TOKEN_PATH:
                self.asked_for_tokens.append(request)
                return self.token
            first = (response for each in self.before if (response := each(request)) is not None)
            return next(first, None) or storage(request)

        self.server, self.address = http_server.start(answer)

    def grant(self, bucket: str, role: str = "roles/storage.objectUser", *, of: str = "") -> None:
        """A role; with `of` a custom one with these permissions, such as "create list", on objects."""
        if of:
            role = f"projects/p/roles/{of.replace(' ', '_')}"
            permissions = [f"storage.objects.{verb}" for verb in of.split()]
            self.cloud.put(ROLE, role, {"permissions": permissions})
        name = f"b/{bucket}/{role}/{POD}"
        self.cloud.put("google_storage_bucket_iam_member", name, {"bucket": bucket, "role": role, "member": POD})

    def objects(self) -> list[str]:
        return [blob.name for bucket in ("own", "other") for blob in self.cloud.blobs(bucket, prefix="")]

    @property
    def variables(self) -> dict[str, str]:
        """What leads a program to it."""
        return {"STORAGE_EMULATOR_HOST": self.address, "GCE_METADATA_HOST": self.address.removeprefix("http://")}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.cloud.close()
