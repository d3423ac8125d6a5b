"""What deploying and planning some stacks takes: from the resource types in use to Google's permissions.

The facts of each type are in vocabulary/resource_types. Decided here is which of the two identities of the pipeline
gets a permission, and under which condition. A type without a file, or with facts missing, ends the synthesis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vocabulary.resource_types import DATA, Permissions, facts_of, missing_facts

SET_POLICY = ".setIamPolicy"


class MissingFacts(Exception):
    """Stacks use resource types of which not all is known that the pipeline's identities depend on."""

    def __init__(self, missing: Iterable[str]) -> None:
        super().__init__("\n".join(missing))


@dataclass(frozen=True, kw_only=True)
class Needed:
    """What the types of some stacks take together.

    types   data sources with "data." before the type
    read    to plan: for both identities
    write   to create, update and delete: for the deploy identity
    own     as `write`, but limited to the environment's own buckets
    grants  by the permission to set an IAM policy: the roles that the stacks grant there
    roles   Google's own, where single permissions do not do. In the cluster: a chart brings cluster roles and webhooks,
            and who may create those administers the cluster, so that an exact list would be longer and not less; and
            no permission is named for ValidatingAdmissionPolicies. The plan identity reads there by Kubernetes' own
            rules (stacks/plan_access.py).
    """

    types: tuple[str, ...]
    read: tuple[str, ...]
    write: tuple[str, ...]
    own: tuple[str, ...]
    grants: Mapping[str, tuple[str, ...]]
    roles: tuple[str, ...]


def needed(stacks: Iterable[Mapping[str, Any]]) -> Needed:
    """Of stacks as Terraform's JSON. Raises MissingFacts, and ValueError for a granted role without a fixed name."""
    used: dict[str, list[Mapping[str, Any]]] = {}
    for stack in stacks:
        for kind, prefix in (("resource", ""), ("data", DATA)):
            for type_, by_id in stack.get(kind, {}).items():
                used.setdefault(prefix + type_, []).extend(by_id.values())
    if missing := [fact for type_ in sorted(used) for fact in missing_facts(type_)]:
        raise MissingFacts(missing)
    of_type = {type_: facts_of(type_).permissions for type_ in used}
    read = {permission for permissions in of_type.values() for permission in _read(permissions)}
    write: set[str] = set()
    own: set[str] = set()
    grants: dict[str, set[str]] = {}
    for type_, permissions in of_type.items():
        for operation in ("create", "update", "delete"):
            limited = permissions.own_only and operation != "create"
            for permission in {*permissions.of(operation)} - read - permissions.withheld.keys():
                if permission.endswith(SET_POLICY):
                    grants.setdefault(permission, set()).update(_role(item) for item in used[type_] if "role" in item)
                else:
                    (own if limited else write).add(permission)
    return Needed(
        types=tuple(sorted(used)),
        read=tuple(sorted(read)),
        write=tuple(sorted(write)),
        own=tuple(sorted(own)),
        grants={permission: tuple(sorted(roles)) for permission, roles in sorted(grants.items())},
        roles=tuple(sorted({permissions.role for permissions in of_type.values() if permissions.role})),
    )


def _read(permissions: Permissions) -> set[str]:
    """With the permission to follow an operation that another account has started."""
    return {*permissions.of("read"), *permissions.also, *([permissions.operation] if permissions.operation else [])}


def _role(member: Mapping[str, Any]) -> str:
    """A condition lists roles by name, so a role that Terraform knows only after apply cannot be in it."""
    role = str(member["role"])
    if "${" in role:
        raise ValueError(f"{role} is granted in a stack; write the role's name in place of the reference")
    return role
