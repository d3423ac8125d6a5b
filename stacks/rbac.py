"""Kubernetes roles and who has them. https://kubernetes.io/docs/reference/access-authn-authz/rbac/"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cdktf import ITerraformDependable
from cdktf_cdktf_provider_kubernetes.cluster_role_binding_v1 import (
    ClusterRoleBindingV1,
    ClusterRoleBindingV1Metadata,
    ClusterRoleBindingV1RoleRef,
    ClusterRoleBindingV1Subject,
)
from cdktf_cdktf_provider_kubernetes.cluster_role_v1 import ClusterRoleV1, ClusterRoleV1Metadata, ClusterRoleV1Rule
from cdktf_cdktf_provider_kubernetes.role_binding_v1 import (
    RoleBindingV1,
    RoleBindingV1Metadata,
    RoleBindingV1RoleRef,
    RoleBindingV1Subject,
)
from cdktf_cdktf_provider_kubernetes.role_v1 import RoleV1, RoleV1Metadata, RoleV1Rule
from constructs import Construct

API_GROUP = "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")

Rule = tuple[Sequence[str], Sequence[str], Sequence[str]]  # API groups, resources, verbs
Subject = tuple[str, str]  # "User" or "Group", and its name


def grant_in_cluster(
    scope: Construct, ids: tuple[str, str], *, name: str, rules: Iterable[Rule], subjects: Iterable[Subject]
) -> None:
    """A cluster role and its binding, both of that name; `ids` are those of the two constructs."""
    role = ClusterRoleV1(
        scope,
        ids[0],
        metadata=ClusterRoleV1Metadata(name=name),
        rule=[
            ClusterRoleV1Rule(api_groups=list(groups), resources=list(resources), verbs=list(verbs))
            for groups, resources, verbs in rules
        ],
    )
    ClusterRoleBindingV1(
        scope,
        ids[1],
        metadata=ClusterRoleBindingV1Metadata(name=name),
        role_ref=ClusterRoleBindingV1RoleRef(api_group=API_GROUP, kind="ClusterRole", name=role.metadata.name),
        subject=[
            ClusterRoleBindingV1Subject(api_group=API_GROUP, kind=kind, name=subject) for kind, subject in subjects
        ],
    )


def grant_in_namespace(
    scope: Construct,
    ids: tuple[str, str],
    *,
    name: str,
    namespace: str,
    rules: Iterable[Rule],
    subjects: Iterable[Subject],
    only: Sequence[str] = (),
    depends_on: Sequence[ITerraformDependable] = (),
) -> RoleBindingV1:
    """A role in a namespace and its binding, both of that name; `ids` are those of the two constructs.

    `only` are the names of the objects that the rules are about; without it, they are about all.
    """
    role = RoleV1(
        scope,
        ids[0],
        metadata=RoleV1Metadata(name=name, namespace=namespace),
        rule=[
            RoleV1Rule(
                api_groups=list(groups),
                resources=list(resources),
                verbs=list(verbs),
                resource_names=list(only) or None,
            )
            for groups, resources, verbs in rules
        ],
        depends_on=list(depends_on) or None,
    )
    return RoleBindingV1(
        scope,
        ids[1],
        metadata=RoleBindingV1Metadata(name=name, namespace=namespace),
        role_ref=RoleBindingV1RoleRef(api_group=API_GROUP, kind="Role", name=role.metadata.name),
        subject=[RoleBindingV1Subject(api_group=API_GROUP, kind=kind, name=subject) for kind, subject in subjects],
    )
