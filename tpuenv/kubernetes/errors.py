"""What an API server refuses, and what to do about it."""

from __future__ import annotations

import json
import re
from typing import Any

from tpuenv.failure import Failed
from vocabulary.printable import shortened

_LONGEST = 600  # characters of an answer that are shown


class Unreachable(Failed):
    """There is no answer, or none that a later request could not change: the network, or a server that is busy."""


class ApiError(Failed):
    """The API server refused a request. `code` is HTTP's, `reason` Kubernetes' word for it, `said` its message.

    https://kubernetes.io/docs/reference/using-api/api-concepts/#error-responses
    """

    def __init__(self, text: str, *, code: int, reason: str, said: str) -> None:
        super().__init__(text)
        self.code = code
        self.reason = reason
        self.said = said

    @property
    def transient(self) -> bool:
        """Whether the server may do it when it is asked again. After 500, 502 and 504 it may have done it already."""
        return self.code in (429, 500, 502, 503, 504)


def explained(code: int, body: str, *, doing: str, cluster: str) -> ApiError:
    """The error for an answer with this status and body. `doing` is what was asked: "create JobSet research/train"."""
    status = _status(body)
    said = shortened(" ".join(str(status.get("message") or body).split()), longest=_LONGEST) or f"HTTP status {code}"
    reason = str(status.get("reason") or "")
    text = _text(code, reason, said, _fields(status), doing=doing, cluster=cluster)
    return ApiError(text, code=code, reason=reason, said=said)


def _text(code: int, reason: str, said: str, fields: list[str], *, doing: str, cluster: str) -> str:
    if code == 401:
        return (
            f"credentials: cluster {cluster} does not accept yours, to {doing} ({said}); run `gcloud auth "
            "application-default login`, then this again"
        )
    if code == 403 and "container.clusters.connect" in said:
        return (
            f"permission: you may not connect to cluster {cluster}: it needs container.clusters.connect, which "
            "roles/container.clusterViewer has. Members of a team have that role: an administrator adds you to MEMBERS "
            f"in vars.env, or to the team in fleet.yaml, and runs `tpuenv deploy`. Google says: {said}"
        )
    if code == 403 and "being terminated" in said:
        return f"team: the namespace is being deleted, so tpuenv cannot {doing}. Kubernetes says: {said}"
    if code == 403:
        user = re.search(r'User "([^"]+)" cannot', said)
        return (
            f"permission: {user[1] if user else 'your account'} may not {doing} in cluster {cluster}. Members of the "
            "team may: an administrator adds the account to MEMBERS in vars.env, or to the team in fleet.yaml, and "
            f"runs `tpuenv deploy`. Kubernetes says: {said}"
        )
    if code == 404 and re.match(r'namespaces "[^"]*" not found', said):
        return (
            f"team: cluster {cluster} has no such namespace ({said}), so tpuenv cannot {doing}; run `tpuenv deploy`, "
            "which creates the namespaces of the teams"
        )
    if code == 404 and "could not find the requested resource" in said:
        return (
            f"cluster: {cluster} does not serve what it takes to {doing}; JobSet and Kueue come with the stack "
            "platform: run `tpuenv deploy`"
        )
    if code == 404 and "no such cluster" in said:
        return f"cluster: there is no cluster {cluster}; run `tpuenv deploy`, which creates it"
    if code == 409 and reason == "AlreadyExists":
        return f"tpuenv cannot {doing}: it exists already; give another name with --name. Kubernetes says: {said}"
    if code in (400, 422):
        what = "".join(f"\n  {field}" for field in fields) if fields else f" {said}"
        return f"Kubernetes refuses to {doing}:{what}"
    return f"cluster {cluster} could not {doing}: HTTP status {code}: {said}"


def _fields(status: dict[str, Any]) -> list[str]:
    """ "spec.replicatedJobs[0].name: Required value", of each field that is wrong."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return [
        shortened(f"{cause.get('field') or '(whole object)'}: {cause.get('message')}", longest=_LONGEST)
        for cause in (causes if isinstance(causes, list) else [])
        if isinstance(cause, dict)
    ]


def _status(body: str) -> dict[str, Any]:
    """A Status object, or an error in Google's form, which the front end of the DNS endpoint gives."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    status = answer.get("error", answer) if isinstance(answer, dict) else None
    return status if isinstance(status, dict) else {}
