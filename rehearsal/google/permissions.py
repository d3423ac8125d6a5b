"""Which account calls, and whether IAM lets it: roles that are bound in the fake cloud, their permissions, conditions.

What each call takes stands in vocabulary/resource_types, and what is in Google's roles in roles.json. A client with the
token of the rehearsal administers everything.
https://cloud.google.com/iam/docs/overview
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal.cloud import Attributes, Cloud
from rehearsal.google.conditions import BadCondition, holds
from vocabulary.resource_types import facts_of, fill, is_described, missing_facts

# In two pieces: a checkout in a rehearsal holds this file, and nothing there may hold the token.
TOKEN = "rehearsal-" + "access-token"  # of the project's administrator; with ":" and an email after it, of that account
ADMINISTRATOR = ""
_PRINCIPAL = "principal://"  # https://cloud.google.com/iam/docs/principal-identifiers

ROLE = "google_project_iam_custom_role"
PROJECT_MEMBER = "google_project_iam_member"

_ROLES: Mapping[str, Sequence[str]] = json.loads((Path(__file__).parent / "roles.json").read_text())

# Who is bound to a resource itself: its name, the kind of its bindings, and the attribute that names it in them.
_BOUND_TO = (
    (re.compile(r"projects/_/buckets/([^/]+)(?:/.*)?"), "google_storage_bucket_iam_member", "bucket"),
    (re.compile(r"(projects/[^/]+/serviceAccounts/.+)"), "google_service_account_iam_member", "service_account_id"),
    (
        re.compile(r"projects/[^/]+/locations/[^/]+/repositories/([^/]+)"),
        "google_artifact_registry_repository_iam_member",
        "repository",
    ),
)


def account_of(token: str | None) -> str | None:
    """The email of a service account or a person, the principal:// of a Kubernetes service account, ADMINISTRATOR, or
    None for a token that is none here.
    """
    if token == TOKEN:
        return ADMINISTRATOR
    account = (token or "").removeprefix(f"{TOKEN}:")
    return account if token != account and ("@" in account or account.startswith(_PRINCIPAL)) else None


def token_of(account: str) -> str:
    """The access token that `account_of` understands."""
    return f"{TOKEN}:{account}" if account else TOKEN


def denied(
    cloud: Cloud, account: str, permission: str, resource: str, *, project: str, roles: Sequence[str] = ()
) -> str:
    """Why `account` may not use `permission` on the resource of that full name, in Google's words; "" if it may.

    `roles` are those whose grants the request changes.
    """
    if account == ADMINISTRATOR:
        return ""
    request = {"iam.googleapis.com/modifiedGrantsByRole": list(roles)} if roles else {}
    for role, condition in _bindings(cloud, _member(account), resource, project):
        if not _has(cloud, role, permission):
            continue
        if not condition or holds(
            condition, resource={"name": resource, "type": "", "service": ""}, attributes=request
        ):
            return ""
    return f"Permission '{permission}' denied on resource '{resource}' (or it may not exist)."


def refused(cloud: Cloud, account: str, type_: str, operation: str, values: Attributes, *, project: str) -> str:
    """Why `account` may not read, create, update or delete a resource of Terraform with these attributes, or ""."""
    if account == ADMINISTRATOR:
        return ""
    if not is_described(type_):
        return missing_facts(type_)[0]
    facts = facts_of(type_)
    permissions = facts.permissions
    within = f"projects/{project}"
    name = fill(permissions.parent or permissions.on or facts.name, {**values, "project": project}) or within
    place = within if operation == "create" and not permissions.parent else name
    roles = [str(values["role"])] if "role" in values and operation != "read" else []
    for permission in permissions.of(operation):
        why = denied(cloud, account, permission, place, project=project, roles=roles)
        if why:
            return why
    for path in permissions.acts_as if operation in ("create", "update") else []:
        for account_ in _at(values, path.split(".")):
            email = account_.rpartition("/")[2]
            target = f"projects/{project}/serviceAccounts/{email}"
            why = denied(cloud, account, "iam.serviceAccounts.actAs", target, project=project)
            if why:
                return f"The user does not have access to service account {email!r}. {why}"
    return ""


def valid(expression: str) -> str:
    """Why a binding's condition is refused, or ""."""
    try:
        holds(expression, resource={"name": "", "type": "", "service": ""}, attributes={})
    except BadCondition as error:
        return str(error)
    return ""


def _bindings(cloud: Cloud, member: str, resource: str, project: str) -> Iterator[tuple[str, str]]:
    """Roles and conditions of a member on a resource and its project."""
    for item in cloud.find(PROJECT_MEMBER):
        if item.attributes["member"] == member and item.attributes["project"] == project:
            yield _binding(item.attributes)
    for pattern, kind, attribute in _BOUND_TO:
        match = pattern.fullmatch(resource)
        if match is None:
            continue
        for item in cloud.find(kind):
            target = str(item.attributes[attribute]).removeprefix("b/")
            if item.attributes["member"] == member and match.group(1) in (target, target.rpartition("/")[2]):
                yield _binding(item.attributes)


def _member(account: str) -> str:
    if account.startswith(_PRINCIPAL):
        return account
    return f"serviceAccount:{account}" if account.endswith(".gserviceaccount.com") else f"user:{account}"


def _binding(attributes: Attributes) -> tuple[str, str]:
    condition = (attributes.get("condition") or [{}])[0]
    return str(attributes["role"]), str(condition.get("expression") or "")


def _has(cloud: Cloud, role: str, permission: str) -> bool:
    custom = cloud.get(ROLE, role) if role.startswith("projects/") else None
    granted: Sequence[str] = _ROLES.get(role, ()) if custom is None else custom.get("permissions") or ()
    return any(
        pattern == permission or (pattern.endswith("*") and permission.startswith(pattern[:-1])) for pattern in granted
    )


def _at(values: Any, path: Sequence[str]) -> Iterator[str]:
    """What is at a path of blocks."""
    if isinstance(values, list):
        for item in values:
            yield from _at(item, path)
    elif path and isinstance(values, Mapping):
        yield from _at(values.get(path[0]), path[1:])
    elif not path and isinstance(values, str) and values:
        yield values
