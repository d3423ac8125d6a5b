"""Google's REST APIs as far as `tpuenv bootstrap` asks them, on a local port: one project, its APIs and buckets.

The answers have the shapes of Google's reference:
  https://cloud.google.com/service-usage/docs/reference/rest/v1/services
  https://cloud.google.com/service-usage/docs/reference/rest/v1/operations
  https://cloud.google.com/storage/docs/json_api/v1/buckets
  https://cloud.google.com/resource-manager/reference/rest/v3/projects/testIamPermissions
  https://cloud.google.com/billing/docs/reference/rest/v1/projects/getBillingInfo
  https://cloud.google.com/apis/design/errors
  https://cloud.google.com/storage/docs/json_api/v1/status-codes
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]

PROJECT, NUMBER = "my-project", "123456789012"


@dataclass(kw_only=True)
class Fault:
    """Answers `times` requests whose "METHOD path" matches with this instead. Then the way is free."""

    request: str
    status: int
    body: Json
    times: int = 1_000


@dataclass(kw_only=True)
class Google:
    """The fake project, and every request that reached it."""

    enabled: set[str] = field(default_factory=lambda: {"serviceusage.googleapis.com", "storage.googleapis.com"})
    buckets: dict[str, Json] = field(default_factory=dict)
    deleted: list[Json] = field(default_factory=list)  # buckets that can be restored
    hidden: set[str] = field(default_factory=set)  # buckets whose owner lets nobody else read them
    faults: list[Fault] = field(default_factory=list)
    looks_until_enabled: int = 1  # at an operation, before it is done
    lists_until_shown: int = 0  # as enabled, after the operation is done
    asks_until_it_answers: int = 0  # of an API that is enabled already
    operation_error: Json | None = None
    billing: bool = True  # whether its account is open
    lacking: set[str] = field(default_factory=set)  # permissions that the caller has not
    requests: list[str] = field(default_factory=list)
    url: str = ""
    _operations: dict[str, list[str]] = field(default_factory=dict)
    _looks: dict[str, int] = field(default_factory=dict)
    _asks: dict[str, int] = field(default_factory=dict)

    @property
    def changes(self) -> list[str]:
        reads = ("GET ", f"POST /api/cloudresourcemanager.googleapis.com/v3/projects/{PROJECT}:testIamPermissions")
        return [request for request in self.requests if not request.startswith(reads)]

    def answer(self, method: str, path: str, query: Mapping[str, list[str]], body: Json) -> tuple[int, Json]:
        request = f"{method} {path}"
        self.requests.append(request)
        for fault in self.faults:
            if fault.times and re.search(fault.request, request):
                fault.times -= 1
                return fault.status, fault.body
        if match := re.fullmatch(r"/api/([^/]+)/.*", path):
            return self._asked(match[1], path, body)
        if path.startswith("/storage/v1/b"):
            return self._storage(method, path.removeprefix("/storage/v1/b").removeprefix("/"), query, body)
        if request == f"GET /v1/projects/{PROJECT}/services:batchGet":
            return self._list([name.rpartition("/")[2] for name in query["names"]])
        if request == f"POST /v1/projects/{PROJECT}/services:batchEnable":
            return self._batch_enable(body["serviceIds"])
        if match := re.fullmatch("GET /v1/(operations/.+)", request):
            return self._operation(match[1])
        return 404, {"error": {"code": 404, "message": f"not supported: {request}", "status": "NOT_FOUND"}}

    def _list(self, names: list[str]) -> tuple[int, Json]:
        services = [self._service(name) for name in names]
        if self._operations and self.lists_until_shown:
            self.lists_until_shown -= 1
            services[-1]["state"] = "DISABLED"
        return 200, {"services": services}

    def _service(self, name: str) -> Json:
        return {
            "name": f"projects/{NUMBER}/services/{name}",
            "parent": f"projects/{NUMBER}",
            "config": {"name": name, "title": f"{name.split('.')[0]} API"},
            "state": "ENABLED" if name in self.enabled else "DISABLED",
        }

    def _batch_enable(self, services: list[str]) -> tuple[int, Json]:
        if len(services) > 20:
            return 400, error(400, "INVALID_ARGUMENT", "A request can enable at most 20 services.")
        name = f"operations/acat.p2-{NUMBER}-{len(self._operations)}"
        self._operations[name] = services
        return 200, {"name": name}

    def _operation(self, name: str) -> tuple[int, Json]:
        self._looks[name] = self._looks.get(name, 0) + 1
        if self._looks[name] <= self.looks_until_enabled:
            return 200, {"name": name}
        if self.operation_error:
            return 200, {"name": name, "done": True, "error": self.operation_error}
        self.enabled.update(self._operations[name])
        kind = "type.googleapis.com/google.api.serviceusage.v1."
        return 200, {
            "name": name,
            "done": True,
            "metadata": {"@type": f"{kind}OperationMetadata"},
            "response": {
                "@type": f"{kind}BatchEnableServicesResponse",
                "services": [self._service(service) for service in self._operations[name]],
            },
        }

    def _asked(self, host: str, path: str, body: Json) -> tuple[int, Json]:
        name = re.sub("^[a-z]+-[a-z]+[0-9]+-", "", host)
        self._asks[name] = self._asks.get(name, 0) + 1
        if name in self.enabled and self._asks[name] > self.asks_until_it_answers:
            if path.endswith(":testIamPermissions"):
                return 200, {"permissions": [each for each in body["permissions"] if each not in self.lacking]}
            if path.endswith("/billingInfo"):
                return 200, {"billingAccountName": "billingAccounts/0-1-2", "billingEnabled": self.billing}
            return 200, {}
        return 403, switched_off(name)

    def _storage(self, method: str, name: str, query: Mapping[str, list[str]], body: Json) -> tuple[int, Json]:
        if method == "GET" and not name:
            listed = self.deleted if query.get("softDeleted", [""])[0].lower() == "true" else self.buckets.values()
            own = [bucket for bucket in listed if bucket["projectNumber"] == NUMBER]
            prefix = query.get("prefix", [""])[0]
            return 200, {
                "kind": "storage#buckets",
                "items": [bucket for bucket in own if bucket["name"].startswith(prefix)],
            }
        if method == "POST":
            return self._new_bucket(body)
        if name not in self.buckets:
            return 404, older_error(404, "notFound", "The specified bucket does not exist.")
        if name in self.hidden:
            return 403, no_access("storage.buckets.get", "Google Cloud Storage bucket")
        if method == "PATCH":
            self.buckets[name].update(body)
        return 200, self.buckets[name]

    def _new_bucket(self, body: Json) -> tuple[int, Json]:
        if body["name"] in self.buckets:
            return 409, older_error(409, "conflict", "The requested bucket name is not available.")
        self.buckets[body["name"]] = bucket(**body)
        return 200, self.buckets[body["name"]]


def bucket(name: str, *, project_number: str = NUMBER, **properties: Any) -> Json:
    """A bucket as Cloud Storage describes it: made with nothing chosen, unless `properties` say so."""
    body: Json = {
        "kind": "storage#bucket",
        "id": name,
        "name": name,
        "selfLink": f"https://www.googleapis.com/storage/v1/b/{name}",
        "projectNumber": project_number,
        "metageneration": "1",
        "location": "US",
        "storageClass": "STANDARD",
        "etag": "CAE=",
        "timeCreated": "2030-01-02T03:04:05.678Z",
        "updated": "2030-01-02T03:04:05.678Z",
        "softDeletePolicy": {"retentionDurationSeconds": "604800", "effectiveTime": "2030-01-02T03:04:05.678Z"},
        "iamConfiguration": {
            "bucketPolicyOnly": {"enabled": False},
            "uniformBucketLevelAccess": {"enabled": False},
            "publicAccessPrevention": "inherited",
        },
    }
    body |= properties
    return body | {"location": body["location"].upper()}


def error(code: int, status: str, message: str, *, reason: str = "", **metadata: str) -> Json:
    """An error of the newer APIs, with an ErrorInfo if there is a reason."""
    body: Json = {"code": code, "message": message, "status": status}
    if reason:
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        body["details"] = [{"@type": kind, "reason": reason, "domain": "googleapis.com", "metadata": metadata}]
    return {"error": body}


def older_error(code: int, reason: str, message: str) -> Json:
    """An error of Cloud Storage."""
    return {
        "error": {
            "code": code,
            "message": message,
            "errors": [{"message": message, "domain": "global", "reason": reason}],
        }
    }


def switched_off(service: str) -> Json:
    message = (
        f"{service} API has not been used in project {NUMBER} before or it is disabled. Enable it by visiting "
        f"https://console.developers.google.com/apis/api/{service}/overview?project={NUMBER} then retry. If you "
        "enabled this API recently, wait a few minutes for the action to propagate to our systems and retry."
    )
    return error(
        403, "PERMISSION_DENIED", message, reason="SERVICE_DISABLED", service=service, consumer=f"projects/{NUMBER}"
    )


def no_access(permission: str, to: str) -> Json:
    message = (
        f"ada@example.com does not have {permission} access to the {to}. Permission '{permission}' denied on resource "
        "(or it may not exist)."
    )
    return older_error(403, "forbidden", message)


@contextmanager
def served(google: Google) -> Iterator[Google]:
    """Serves it at `google.url` for the time of the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet an answer: two would wait 40 ms for each other

        def _serve(self) -> None:
            url = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, reply = google.answer(self.command, url.path, parse_qs(url.query), json.loads(body or "{}"))
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=UTF-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = _serve

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        google.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield google
        finally:
            server.shutdown()
            thread.join()
