"""What the members of teams may do: submit and read their own jobs, read the queues that admit them, and the images."""

from __future__ import annotations

from cdktf_cdktf_provider_google.artifact_registry_repository_iam_member import ArtifactRegistryRepositoryIamMember
from cdktf_cdktf_provider_google.project_iam_member import ProjectIamMember
from cdktf_cdktf_provider_kubernetes.role_binding_v1 import RoleBindingV1
from constructs import Construct

from environment import Environment, MemberKind
from environment.members import Member
from stacks.rbac import READ, Subject, grant_in_cluster, grant_in_namespace
from stacks.teams import Team

OWN = [*READ, "create", "delete", "deletecollection", "patch", "update"]

# No pods of their own: the label of an admitted pod can be forged. No queues, no roles, no service accounts.
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
SUBJECT_KINDS = {MemberKind.USER: "User", MemberKind.GROUP: "Group"}


class Access(Construct):
    """Kubernetes decides what a member may do. Google only lets them connect to the cluster, and read our images:
    `tpuenv submit` writes the digest of an image into a manifest.

    roles/container.developer, or viewer, would let them do and read more than that, for Google's grants add to those of
    Kubernetes. https://cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control

    `members` are the role bindings by team; a team without members has none.
    """

    def __init__(self, scope: Construct, id_: str, *, environment: Environment, teams: list[Team]) -> None:
        super().__init__(scope, id_)
        self.members: dict[str, RoleBindingV1] = {
            team.team.name: grant_in_namespace(
                self,
                (f"role-{team.team.name}", f"members-{team.team.name}"),
                name=NAME,
                namespace=team.namespace.metadata.name,
                rules=RULES,
                subjects=subjects_of(team),
            )
            for team in teams
            if team.team.members
        }
        everybody = list(dict.fromkeys(member for team in teams for member in team.team.members))
        if not everybody:
            return
        grant_in_cluster(
            self,
            ("queue-reader", "queue-readers"),
            name=NAME,
            rules=QUEUE_RULES,
            subjects=map(subject_of, everybody),
        )
        for member in everybody:
            id_ = f"{member.kind.value}-{member.email}"
            ProjectIamMember(
                self,
                id_,
                project=environment.settings.project_id,
                role="roles/container.clusterViewer",
                member=member.principal,
            )
            ArtifactRegistryRepositoryIamMember(
                self,
                f"images-{id_}",
                repository=environment.names.registry,
                location=environment.settings.region,
                role="roles/artifactregistry.reader",
                member=member.principal,
            )


def subjects_of(team: Team) -> list[Subject]:
    """The members of a team, as the subjects of a binding."""
    return [subject_of(member) for member in team.team.members]


def subject_of(member: Member) -> Subject:
    """A member, as the subject of a binding."""
    return SUBJECT_KINDS[member.kind], member.email
