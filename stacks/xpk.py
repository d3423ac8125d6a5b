"""What `xpk workload create` looks for in a cluster besides queues and ConfigMaps, and that members may look for it.

xpk 1.16.0 creates the service account, the role and the bindings where it does not find them (core/cluster.py). That
takes rights that members do not have, so they are there. Its jobs run as the service account `default`, on the network
of their hosts, where no service account of Kubernetes has rights on a bucket.
"""

from __future__ import annotations

from cdktf_cdktf_provider_kubernetes.role_binding_v1 import (
    RoleBindingV1,
    RoleBindingV1Metadata,
    RoleBindingV1RoleRef,
    RoleBindingV1Subject,
)
from cdktf_cdktf_provider_kubernetes.role_v1 import RoleV1, RoleV1Metadata, RoleV1Rule
from cdktf_cdktf_provider_kubernetes.service_account_v1 import ServiceAccountV1, ServiceAccountV1Metadata
from constructs import Construct

from environment import Environment
from environment.fleet import xpk
from stacks.access import subjects_of
from stacks.rbac import API_GROUP, READ, grant_in_cluster, grant_in_namespace
from stacks.teams import Team

ACCOUNT = "xpk-sa"
ROLE = "pod-reader"
NAME = "tpuenv-xpk"  # of what lets members look


class XpkAccess(Construct):
    """For each team, what xpk expects in its namespace; for all members, the right to read that and the ConfigMaps."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment, teams: list[Team]) -> None:
        super().__init__(scope, id_)
        for team in teams:
            self._expected(team)
        everybody = list(dict.fromkeys(subject for team in teams for subject in subjects_of(team)))
        if not everybody:
            return
        grant_in_namespace(
            self,
            ("reader", "readers"),
            name=NAME,
            namespace=xpk.NAMESPACE,
            rules=[([""], ["configmaps"], ["get"])],
            subjects=everybody,
        )
        # The kind does not exist, which xpk takes for "no storage"; that it may not be listed ends xpk.
        grant_in_cluster(
            self,
            ("storage-reader", "storage-readers"),
            name=NAME,
            rules=[(["xpk.x-k8s.io"], ["storages"], ["list"])],
            subjects=everybody,
        )

    def _expected(self, team: Team) -> None:
        name, namespace = team.team.name, team.namespace.metadata.name
        account = ServiceAccountV1(
            self, f"account-{name}", metadata=ServiceAccountV1Metadata(name=ACCOUNT, namespace=namespace)
        )
        role = RoleV1(
            self,
            f"pods-{name}",
            metadata=RoleV1Metadata(name=ROLE, namespace=namespace),
            rule=[
                RoleV1Rule(api_groups=[""], resources=["pods", "services"], verbs=list(READ)),
                RoleV1Rule(api_groups=["batch"], resources=["jobs"], verbs=list(READ)),
            ],
        )
        for id_, subject in (("default", "default"), (ACCOUNT, account.metadata.name)):
            RoleBindingV1(
                self,
                f"pods-{name}-{id_}",
                metadata=RoleBindingV1Metadata(name=f"{id_}-{ROLE}-binding", namespace=namespace),
                role_ref=RoleBindingV1RoleRef(api_group=API_GROUP, kind="Role", name=role.metadata.name),
                subject=[RoleBindingV1Subject(kind="ServiceAccount", name=subject, namespace=namespace)],
            )
        if team.team.members:
            grant_in_namespace(
                self,
                (f"reader-{name}", f"readers-{name}"),
                name=NAME,
                namespace=namespace,
                rules=[
                    ([""], ["serviceaccounts"], ["get"]),
                    ([API_GROUP], ["roles", "rolebindings"], ["get"]),
                ],
                subjects=subjects_of(team),
            )
