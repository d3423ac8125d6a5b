"""An API server at an address that asks for no credentials: `kubectl proxy` of a real one, or the fake one."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from rehearsal.kubernetes.resources import ALL, Resource

Object = dict[str, Any]
T = TypeVar("T")

KUEUE = "kueue.x-k8s.io/v1beta2"


class Refused(Exception):
    """The API server, or one of its webhooks, did not take an object. `code` is HTTP's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code} {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True, kw_only=True)
class ApiServer:
    """Raises Refused for every answer that is an error, but for 404 of what is read or deleted.

    It asks as `user`, with the rights of that user and of `group`; without one, as whoever the address stands for.
    """

    address: str
    user: str = ""
    group: str = ""

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        return self._ask("GET", f"{_path(_resource(kind), namespace)}/{quote(name)}")

    def list(self, kind: str, namespace: str = "") -> list[Object]:
        """All objects of a kind, of one namespace or of the cluster; none where the kind is not served."""
        reply = self._ask("GET", _path(_resource(kind), namespace))
        return list(reply.get("items", [])) if reply else []

    def serves(self, kind: str) -> bool:
        return self._ask("GET", _path(_resource(kind), "")) is not None

    def create(self, manifest: Object, *, dry_run: bool = False) -> Object:
        resource = _of(manifest)
        path = _path(resource, manifest["metadata"].get("namespace", "") if resource.namespaced else "")
        options = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self._ask("POST", path + options, manifest) or {}

    def merge(self, kind: str, name: str, change: Object, namespace: str = "") -> None:
        self._ask("PATCH", f"{_path(_resource(kind), namespace)}/{quote(name)}", change)

    def delete(self, manifest: Object, *, propagation: str = "Background") -> None:
        """Also what it owns, in the background. What is not there is deleted."""
        resource, metadata = _of(manifest), manifest["metadata"]
        path = _path(resource, metadata.get("namespace", "") if resource.namespaced else "")
        self._ask("DELETE", f"{path}/{quote(metadata['name'])}", {"propagationPolicy": propagation})

    def may(self, verb: str, resource: str, *, user: str, groups: Sequence[str] = (), namespace: str = "") -> bool:
        """What the API server's authorizer says of a user; `resource` is plural, with its group: `jobs.batch/status`.

        https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/subject-access-review-v1/
        """
        name, _, subresource = resource.partition("/")
        plural, _, group = name.partition(".")
        attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user,
                "groups": ["system:authenticated", *groups],
                "resourceAttributes": {**attributes, "namespace": namespace},
            },
        }
        answer = self._ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review) or {}
        return bool(answer["status"]["allowed"])

    def rules(self, namespace: str) -> list[Object]:
        """What whoever asks may do in a namespace, subresources included.

        https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/self-subject-rules-review-v1/
        """
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace},
        }
        answer = self._ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review) or {}
        return list(answer["status"]["resourceRules"])

    def _ask(self, method: str, path: str, body: Object | None = None) -> Object | None:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = urllib.request.Request(
            self.address + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Content-Type": kind,
                **({"Impersonate-User": self.user} if self.user else {}),
                **({"Impersonate-Group": self.group} if self.group else {}),
            },
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                answer: Object = json.load(reply)
                return answer
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            if error.code == 404 and method in ("GET", "DELETE"):
                return None
            raise Refused(error.code, _message(text)) from None


def until(what: str, answer: Callable[[], T | None]) -> T:
    """Asks until there is an answer; the time limit of tests says when it is too long, and the traceback `what`."""
    while (result := answer()) is None:
        time.sleep(0.1)
    return result


def _message(text: str) -> str:
    """Of a Status object, else the text itself."""
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text.strip()


def _resource(kind: str) -> Resource:
    return next(resource for resource in ALL if resource.kind == kind)


def _of(manifest: Object) -> Resource:
    return next(
        resource
        for resource in ALL
        if (resource.api_version, resource.kind) == (manifest["apiVersion"], manifest["kind"])
    )


def _path(resource: Resource, namespace: str) -> str:
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
    return f"{root}/namespaces/{quote(namespace)}/{resource.plural}" if namespace else f"{root}/{resource.plural}"
