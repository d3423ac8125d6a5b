"""The project over HTTP: itself and its permissions, its billing account, its APIs, and the policies that hold for it.

https://cloud.google.com/resource-manager/reference/rest/v3/projects
https://cloud.google.com/billing/docs/reference/rest/v1/projects/getBillingInfo
https://cloud.google.com/service-usage/docs/reference/rest/v1/services/list
https://cloud.google.com/resource-manager/docs/reference/orgpolicy/rest/v2/projects.policies/getEffectivePolicy
"""

from __future__ import annotations

import json
import re

from rehearsal.cloud import Attributes, Cloud
from rehearsal.google import permissions
from rehearsal.google.http_access import caller, permit
from rehearsal.google.resource import PROJECT, SERVICE
from rehearsal.http_server import HttpError, Request, Response, json_response

_PATHS = {
    "project": re.compile(r"/v3/(projects/([^/:]+))"),
    "permissions": re.compile(r"/v3/(projects/([^/:]+)):testIamPermissions"),
    "billing": re.compile(r"/v1/(projects/([^/:]+))/billingInfo"),
    "services": re.compile(r"/v1/(projects/([^/:]+))/services"),
    "policy": re.compile(r"/v2/(projects/([^/:]+))/policies/([^/:]+):getEffectivePolicy"),
}
_READ = {
    "project": "resourcemanager.projects.get",
    "billing": "resourcemanager.projects.get",
    "services": "serviceusage.services.list",
    "policy": "orgpolicy.policies.get",
}
_BOOLEANS = ("compute.requireShieldedVm", "iam.disableServiceAccountCreation")  # constraints; the others are lists
_ACCOUNT = "billingAccounts/000000-111111-222222"
_PAGE = 10  # fewer than there are, so that a client has to follow nextPageToken


def serves(path: str) -> bool:
    return any(pattern.fullmatch(path) for pattern in _PATHS.values())


def serve(cloud: Cloud, request: Request) -> Response:
    """The answer; raises HttpError."""
    for what, pattern in _PATHS.items():
        match = pattern.fullmatch(request.path)
        if match is None or request.method != ("POST" if what == "permissions" else "GET"):
            continue
        account, (name, project, *rest) = caller(request), match.groups()
        stored = cloud.get(PROJECT, name)
        if stored is None:
            raise HttpError(403, "The caller does not have permission")
        if what == "permissions":
            return json_response(_permissions(cloud, account, name, project, request))
        permit(cloud, account, _READ[what], name, project=project)
        if what == "services":
            return json_response(_services(cloud, name, stored, request))
        if what == "billing":
            info = {"name": f"{name}/billingInfo", "projectId": project}
            return json_response({**info, "billingAccountName": _ACCOUNT, "billingEnabled": True})
        if what == "policy":
            # No organisation is above the project.
            rule = {"enforce": False} if rest[0] in _BOOLEANS else {"allowAll": True}
            return json_response({"name": f"{name}/policies/{rest[0]}", "spec": {"rules": [rule]}})
        return json_response({"name": f"projects/{stored['number']}", "projectId": project, "state": "ACTIVE"})
    raise HttpError(404, "Not Found")


def _permissions(cloud: Cloud, account: str, name: str, project: str, request: Request) -> Attributes:
    """Those of the request that the caller has; no key where there is none."""
    asked = json.loads(request.body).get("permissions", [])
    if len(asked) > 100:
        raise HttpError(400, "Too many permissions in the request; at most 100 are allowed.")
    has = [name_ for name_ in asked if not permissions.denied(cloud, account, name_, name, project=project)]
    return {"permissions": has} if has else {}


def _services(cloud: Cloud, name: str, stored: Attributes, request: Request) -> Attributes:
    enabled = sorted(item.attributes["service"] for item in cloud.find(SERVICE, prefix=f"{name}/services/"))
    start = int(request.query.get("pageToken") or 0)
    number = f"projects/{stored['number']}"
    services = [
        {"name": f"{number}/services/{service}", "parent": number, "state": "ENABLED"}
        for service in enabled[start : start + _PAGE]
    ]
    more = {"nextPageToken": str(start + _PAGE)} if start + _PAGE < len(enabled) else {}
    return {"services": services, **more}
