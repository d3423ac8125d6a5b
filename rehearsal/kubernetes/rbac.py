"""What the roles in a cluster let a user or a group do, and the API server's answer to that question.

https://kubernetes.io/docs/reference/access-authn-authz/rbac/
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.objects import Object
from rehearsal.kubernetes.resources import ALL, Resource

API = "rbac.authorization.k8s.io/v1"
REVIEW = "apis/authorization.k8s.io/v1/subjectaccessreviews"
SELF_REVIEW = "apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def allows(
    api: Api,
    *,
    verb: str,
    group: str,
    resource: str,
    user: str,
    groups: Collection[str] = (),
    namespace: str = "",
    name: str = "",
) -> bool:
    """Whether a role that is bound to the user, or to one of the groups, has it; `resource` may be a subresource."""
    return any(
        _has(rule, "verbs", verb)
        and _has(rule, "apiGroups", group)
        and _has(rule, "resources", resource)
        and (not rule.get("resourceNames") or name in rule["resourceNames"])
        for rule in _rules(api, user, groups, namespace)
    )


def review(api: Api, body: Object) -> Object:
    """A SubjectAccessReview with its status. https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/"""
    spec = body.get("spec", {})
    asked = spec.get("resourceAttributes", {})
    allowed = allows(
        api,
        verb=asked.get("verb", ""),
        group=asked.get("group", ""),
        resource="/".join(filter(None, (asked.get("resource"), asked.get("subresource")))),
        user=spec.get("user", ""),
        groups=spec.get("groups", ()),
        namespace=asked.get("namespace", ""),
        name=asked.get("name", ""),
    )
    return body | {"status": {"allowed": allowed}}


def _has(rule: Object, part: str, value: str) -> bool:
    return value in rule.get(part, ()) or "*" in rule.get(part, ())


def _rules(api: Api, user: str, groups: Collection[str], namespace: str) -> Iterator[Object]:
    bindings = api.all(_kind("ClusterRoleBinding"))
    bindings += api.all(_kind("RoleBinding"), namespace) if namespace else []
    for binding in bindings:
        subjects = binding.get("subjects", ())
        if not any(_is(subject, user, groups) for subject in subjects):
            continue
        role = _kind(binding["roleRef"]["kind"])
        for bound in api.all(role, binding["metadata"].get("namespace", "") if role.namespaced else ""):
            if bound["metadata"]["name"] == binding["roleRef"]["name"]:
                yield from bound.get("rules", [])


def _is(subject: Object, user: str, groups: Collection[str]) -> bool:
    if subject["kind"] == "ServiceAccount":
        return user == f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
    return subject["name"] in (groups if subject["kind"] == "Group" else [user])


def _kind(name: str) -> Resource:
    return next(item for item in ALL if (item.api_version, item.kind) == (API, name))
