"""Creates, reads and deletes the objects of one cluster, and reads the logs of its pods."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import requests
from google.api_core.exceptions import RetryError
from google.api_core.retry import Retry
from google.auth.exceptions import GoogleAuthError, TransportError

from tpuenv.failure import Failed
from tpuenv.google.clients import LOG_IN_AGAIN, Patience
from tpuenv.kubernetes.errors import ApiError, Unreachable, explained
from tpuenv.kubernetes.objects import Object

T = TypeVar("T")

# By kind: its API version, and its name in paths. What members of a team may read or write, stacks/access.py.
_KINDS = {
    "ClusterQueue": ("kueue.x-k8s.io/v1beta2", "clusterqueues"),
    "ConfigMap": ("v1", "configmaps"),
    "Event": ("v1", "events"),
    "Job": ("batch/v1", "jobs"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "jobsets"),
    "LocalQueue": ("kueue.x-k8s.io/v1beta2", "localqueues"),
    "Node": ("v1", "nodes"),
    "Pod": ("v1", "pods"),
    "RayCluster": ("ray.io/v1", "rayclusters"),
    "RayJob": ("ray.io/v1", "rayjobs"),
    "ResourceFlavor": ("kueue.x-k8s.io/v1beta2", "resourceflavors"),
    "Secret": ("v1", "secrets"),
    "Service": ("v1", "services"),
    "WorkloadPriorityClass": ("kueue.x-k8s.io/v1beta2", "workloadpriorityclasses"),
    "Workload": ("kueue.x-k8s.io/v1beta2", "workloads"),
}
CREATED = ("ConfigMap", "Job", "JobSet", "RayCluster", "RayJob", "Secret", "Service")

_METADATA = ("labels", "annotations")  # mappings, where there are any

_CHUNK = 500  # objects in one answer to a list: what kubectl asks for
_SHORT_SECONDS = 3  # for an answer that nobody needs to go on
_PIECE = 16384  # bytes of a log


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The API server at `address`, of the cluster with that name. Every method raises ApiError for what is refused and
    Unreachable where there is no answer in the time of `patience`.
    """

    address: str
    name: str
    session: requests.Session
    say: Callable[[str], None] = lambda _: None
    patience: Patience = field(default_factory=Patience)

    def with_little_patience(self) -> Cluster:
        """For what nobody needs to go on: it fails where there is no answer at once."""
        patience = replace(self.patience, answer=min(_SHORT_SECONDS, self.patience.answer), again=0)
        return replace(self, patience=patience)

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        """The object, or None where there is none."""
        try:
            return self._object("GET", _path(kind, namespace, name), f"read {kind} {_place(namespace, name)}")
        except ApiError as error:
            if error.code == 404 and error.reason == "NotFound" and "requested resource" not in error.said:
                return None
            raise

    def all(self, kind: str, namespace: str = "", *, labels: Mapping[str, str] | None = None) -> list[Object]:
        """The objects of a kind with these labels, of one namespace or of the whole cluster."""
        selector = ",".join(f"{key}={value}" for key, value in (labels or {}).items())
        query = {"limit": str(_CHUNK), "labelSelector": selector}
        doing = f"list {_KINDS[kind][1]}" + (f" in namespace {namespace}" if namespace else "")
        objects: list[Object] = []
        while True:
            answer = self._ask("GET", _path(kind, namespace, "", **query), doing)
            items, metadata = answer.get("items") or [], answer.get("metadata") or {}
            if not isinstance(items, list) or not isinstance(metadata, dict) or not all(map(_is_object, items)):
                raise self._bad_answer(doing)
            # The items of a list do not say what they are.
            objects += [{"apiVersion": _KINDS[kind][0], "kind": kind, **item} for item in items]
            more = metadata.get("continue")
            if not more:
                return objects
            query["continue"] = more

    def create(self, manifest: Object) -> Object:
        """The object as created. An unknown field is refused. Raises Failed for a kind that is not one of CREATED.

        A request whose answer was lost is not repeated: the object may exist.
        """
        kind, metadata = str(manifest["kind"]), manifest["metadata"]
        if kind not in CREATED or manifest.get("apiVersion") != _KINDS[kind][0]:
            raise Failed(
                f"manifest: tpuenv creates no {manifest.get('apiVersion')} {kind}, only {', '.join(CREATED)}; create "
                "it with `kubectl create -f`"
            )
        path = _path(kind, metadata["namespace"], "", fieldValidation="Strict")
        name = metadata.get("name") or f"{metadata.get('generateName', '')}..."
        doing = f"create {kind} {_place(metadata['namespace'], name)}"
        return self._object("POST", path, doing, manifest)

    def refuses(self, manifest: Object) -> bool:
        """Whether the caller's role or a policy keeps the object from being created; nothing is created."""
        kind, metadata = str(manifest["kind"]), manifest["metadata"]
        doing = f"try whether {kind} {_place(metadata['namespace'], metadata['name'])} could be created"
        try:
            self._object("POST", _path(kind, metadata["namespace"], "", dryRun="All"), doing, manifest)
        except ApiError as error:
            if error.code == 403 or "ValidatingAdmissionPolicy" in error.said:
                return True
            raise
        return False

    def may(self, verb: str, kind: str, namespace: str, *, account: tuple[str, str] | None = None) -> bool:
        """Whether the caller, or the service account of that namespace and name, may do that."""
        version, plural = _KINDS[kind]
        asked = {"verb": verb, "group": version.rpartition("/")[0], "resource": plural, "namespace": namespace}
        spec: Object = {"resourceAttributes": asked}
        if account:
            groups = ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{account[0]}"]
            spec |= {"user": f"system:serviceaccount:{':'.join(account)}", "groups": groups}
        review = "SubjectAccessReview" if account else "SelfSubjectAccessReview"
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": review, "spec": spec}
        doing = f"ask who may {verb} {plural} in namespace {namespace}"
        status = self._ask("POST", f"/apis/authorization.k8s.io/v1/{review.lower()}s", doing, body).get("status")
        return isinstance(status, dict) and status.get("allowed") is True

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Deletes the object, and in the background what it owns."""
        doing = f"delete {kind} {_place(namespace, name)}"
        self._ask("DELETE", _path(kind, namespace, name), doing, {"propagationPolicy": "Background"})

    def log(
        self,
        namespace: str,
        pod: str,
        *,
        container: str = "",
        follow: bool = False,
        since: str = "",
        tail: int | None = None,
    ) -> Generator[bytes, None, None]:
        """The log of a container, line by line without the line's end, each after its time and a space.

        `since` is a time of such a line: what was logged in that second comes again. With `follow` it goes on until the
        container ends, or the connection, or nothing was logged for the time of `patience.quiet`: which of them it was,
        the pod says.
        https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#get-read-log-of-the-specified-pod
        """
        query = {
            "timestamps": "true",
            "container": container,
            "follow": "true" if follow else "",
            "sinceTime": re.sub(r"\.\d+", "", since),
            "tailLines": "" if tail is None else str(tail),
        }
        doing = f"read the log of pod {_place(namespace, pod)}"
        path = _path("Pod", namespace, pod, subresource="log", **query)
        quiet = self.patience.quiet if follow else self.patience.answer
        response = self._patiently("GET", path, doing, None, stream=True, timeout=(self.patience.answer, quiet))
        rest = b""
        with response:
            pieces = response.iter_content(chunk_size=_PIECE if response.headers.get("Content-Length") else None)
            while True:
                try:
                    piece = next(pieces, None)
                except requests.exceptions.RequestException:
                    return  # of a line that was not read whole nothing: it comes again
                if piece is None:
                    break
                *lines, rest = (rest + piece).split(b"\n")
                yield from lines
        if rest:
            yield rest

    def _ask(self, method: str, path: str, doing: str, body: Object | None = None) -> Object:
        response = self._patiently(method, path, doing, body, timeout=self.patience.answer)
        try:
            answer = response.json()
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise Failed(f"cluster {self.name}: the answer to the request to {doing} is not a JSON object")
        return answer

    def _object(self, method: str, path: str, doing: str, body: Object | None = None) -> Object:
        answer = self._ask(method, path, doing, body)
        if not _is_object(answer):
            raise self._bad_answer(doing)
        return answer

    def _bad_answer(self, doing: str) -> Failed:
        return Failed(
            f"cluster {self.name}: the answer to the request to {doing} is no Kubernetes object; check HTTPS_PROXY, "
            "then run this again"
        )

    def _patiently(self, method: str, path: str, doing: str, body: Object | None, **options: Any) -> requests.Response:
        """The response, after transient faults of another try."""

        def ask() -> requests.Response:
            response: requests.Response = self.session.request(method, self.address + path, json=body, **options)
            if not response.ok:
                raise explained(response.status_code, response.text, doing=doing, cluster=self.name)
            return response

        def transient(error: BaseException) -> bool:
            if isinstance(error, ApiError):
                return error.transient
            return method != "POST" and isinstance(error, requests.exceptions.RequestException | TransportError)

        retry = Retry(
            predicate=transient,
            initial=self.patience.poll / 3,
            maximum=10,
            timeout=self.patience.again,
            on_error=lambda error: self.say(f"  no good answer yet ({_brief(error)}); trying again"),
        )
        try:
            return retry(ask)()
        except RetryError as error:
            raise self._unreachable(error.cause, doing, again=True) from error
        except (requests.exceptions.RequestException, TransportError) as error:
            raise self._unreachable(error, doing, again=False) from error
        except GoogleAuthError as error:
            raise Failed(
                f"credentials: Google does not accept yours, to {doing} ({_brief(error)}); {LOG_IN_AGAIN}"
            ) from error

    def _unreachable(self, error: BaseException | None, doing: str, *, again: bool) -> Unreachable:
        if again:
            return Unreachable(
                f"network: no good answer from cluster {self.name} within {self.patience.again:.0f} s, to {doing}: "
                f"{_brief(error)}; check the connection and HTTPS_PROXY, then run this again"
            )
        return Unreachable(
            f"network: the connection to cluster {self.name} was lost while tpuenv asked it to {doing} "
            f"({_brief(error)}): it is not known whether that was done; `tpuenv jobs` shows what is there"
        )


def _path(kind: str, namespace: str, name: str, *, subresource: str = "", **query: str) -> str:
    version, plural = _KINDS[kind]
    parts = ["apis" if "/" in version else "api", version]
    parts += ["namespaces", quote(namespace, safe="")] if namespace else []
    parts += [plural, *([quote(name, safe="")] if name else []), *([subresource] if subresource else [])]
    given = urlencode({key: value for key, value in query.items() if value})
    return "/" + "/".join(parts) + (f"?{given}" if given else "")


def _is_object(answer: object) -> bool:
    """Whether it has the form of an object, as far as what reads it relies on that: a name, and mappings."""
    if not isinstance(answer, dict) or not isinstance(answer.get("metadata"), dict):
        return False
    parts = (answer.get("spec"), answer.get("status"), *(answer["metadata"].get(key) for key in _METADATA))
    return isinstance(answer["metadata"].get("name"), str) and all(isinstance(part or {}, dict) for part in parts)


def _place(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _brief(error: BaseException | None) -> str:
    """Of a failed connection, the kind of fault; of an answer, what it says."""
    if isinstance(error, ApiError):
        return f"HTTP status {error.code}: {error.said}"
    kinds = re.findall(r"\w+Error", str(error))
    return str(kinds[-1] if kinds else type(error).__name__)
