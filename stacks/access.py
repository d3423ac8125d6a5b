"""What the members of teams may do: submit and see their own team's jobs, and read the queues that decide them."""

from __future__ import annotations

from cdktf_cdktf_provider_google.project_iam_member import ProjectIamMember
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

from environment import Environment, MemberKind
from stacks.teams import Team

READ = ["get", "list", "watch"]
OWN = [*READ, "create", "delete", "deletecollection", "patch", "update"]

# No pods of their own: the label that tells an admitted pod can be forged. No queues, no roles, no service accounts.
RULES = (
    (["batch"], ["jobs"], OWN),
    (["jobset.x-k8s.io"], ["jobsets"], OWN),
    (["ray.io"], ["rayjobs", "rayclusters"], OWN),
    ([""], ["configmaps", "secrets", "services"], OWN),
    ([""], ["pods", "pods/log", "events"], READ),
    ([""], ["pods/exec", "pods/portforward"], ["create", "get"]),
    (["kueue.x-k8s.io"], ["localqueues", "workloads"], READ),
)
QUEUE_RULES = ((["kueue.x-k8s.io"], ["clusterqueues", "cohorts", "resourceflavors", "workloadpriorityclasses"], READ),)

NAME = "tpuenv-member"
API_GROUP = "rbac.authorization.k8s.io"
SUBJECT_KINDS = {MemberKind.USER: "User", MemberKind.GROUP: "Group"}


class Access(Construct):
    """Kubernetes decides what a member may do. Of Google they get only the way to the cluster.

    roles/container.developer, or viewer, would let them do and see more than that, for Google's grants add to those of
    Kubernetes. https://cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control
    """

    def __init__(self, scope: Construct, id_: str, *, environment: Environment, teams: list[Team]) -> None:
        super().__init__(scope, id_)
        for team in teams:
            if team.team.members:
                self._in_namespace(team)
        everybody = dict.fromkeys(member for team in teams for member in team.team.members)
        if not everybody:
            return
        role = ClusterRoleV1(
            self,
            "queue-reader",
            metadata=ClusterRoleV1Metadata(name=NAME),
            rule=[
                ClusterRoleV1Rule(api_groups=groups, resources=kinds, verbs=verbs)
                for groups, kinds, verbs in QUEUE_RULES
            ],
        )
        ClusterRoleBindingV1(
            self,
            "queue-readers",
            metadata=ClusterRoleBindingV1Metadata(name=NAME),
            role_ref=ClusterRoleBindingV1RoleRef(api_group=API_GROUP, kind="ClusterRole", name=role.metadata.name),
            subject=[
                ClusterRoleBindingV1Subject(api_group=API_GROUP, kind=SUBJECT_KINDS[member.kind], name=member.email)
                for member in everybody
            ],
        )
        for member in everybody:
            ProjectIamMember(
                self,
                f"{member.kind.value}-{member.email}",
                project=environment.settings.project_id,
                role="roles/container.clusterViewer",
                member=f"{member.kind.value}:{member.email}",
            )

    def _in_namespace(self, team: Team) -> None:
        namespace = team.namespace.metadata.name
        role = RoleV1(
            self,
            f"role-{team.team.name}",
            metadata=RoleV1Metadata(name=NAME, namespace=namespace),
            rule=[RoleV1Rule(api_groups=groups, resources=kinds, verbs=verbs) for groups, kinds, verbs in RULES],
        )
        RoleBindingV1(
            self,
            f"members-{team.team.name}",
            metadata=RoleBindingV1Metadata(name=NAME, namespace=namespace),
            role_ref=RoleBindingV1RoleRef(api_group=API_GROUP, kind="Role", name=role.metadata.name),
            subject=[
                RoleBindingV1Subject(api_group=API_GROUP, kind=SUBJECT_KINDS[member.kind], name=member.email)
                for member in team.team.members
            ],
        )
