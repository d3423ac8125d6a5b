"""A team in the cluster: its namespace and what limits it there, its service account, and what that account may do in
Google Cloud.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdktf import ITerraformDependable
from cdktf_cdktf_provider_google.project_iam_member import ProjectIamMember
from cdktf_cdktf_provider_google.storage_bucket_iam_member import StorageBucketIamMember
from cdktf_cdktf_provider_kubernetes.namespace_v1 import NamespaceV1, NamespaceV1Metadata, NamespaceV1Timeouts
from cdktf_cdktf_provider_kubernetes.service_account_v1 import ServiceAccountV1, ServiceAccountV1Metadata
from constructs import Construct

from environment import Environment
from environment.fleet import model
from environment.kubernetes.team_objects import namespace_annotations, namespace_labels, team_objects
from stacks.owned import owned

# Read, write and delete objects; and read the bucket itself, which MaxText does before it writes a checkpoint.
BUCKET_ROLES = {"objects": "roles/storage.objectUser", "reader": "roles/storage.legacyBucketReader"}


def project_roles(environment: Environment) -> dict[str, str]:
    """Write TensorBoard experiments, and logs: MaxText records there when each step starts and ends, from which its
    goodput follows.
    """
    tensorboard = f"projects/{environment.settings.project_id}/roles/{environment.names.tensorboard_role}"
    return {"tensorboard": tensorboard, "logs": "roles/logging.logWriter"}


class Team(Construct):
    """The pods of a team act as one identity, bound to the team's own bucket, and to writing TensorBoard experiments
    and logs.

    The binding names the Kubernetes service account itself, with no Google service account between. A TensorBoard is
    one resource to IAM, and so are a project's logs: teams can write into each other's there, and read neither.
    https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        environment: Environment,
        team: model.Team,
        project_number: str,
        depends_on: Sequence[ITerraformDependable],
    ) -> None:
        super().__init__(scope, id_)
        self.team = team
        settings, names = environment.settings, environment.names
        self.namespace = NamespaceV1(
            self,
            "namespace",
            metadata=NamespaceV1Metadata(
                name=team.name,
                labels=namespace_labels(team),
                annotations=namespace_annotations(environment) or None,
            ),
            timeouts=NamespaceV1Timeouts(delete="15m"),
            depends_on=list(depends_on),
        )
        limits = [
            owned(self, f"{manifest['kind']}-{manifest['metadata']['name']}", manifest, depends_on=[self.namespace])
            for manifest in team_objects(environment, team)
        ]
        account = ServiceAccountV1(
            self,
            "account",
            metadata=ServiceAccountV1Metadata(name=names.team_account, namespace=self.namespace.metadata.name),
        )
        identity = (
            f"principal://iam.googleapis.com/projects/{project_number}/locations/global/workloadIdentityPools/"
            f"{settings.project_id}.svc.id.goog/subject/ns/{team.name}/sa/{names.team_account}"
        )
        grants: list[ITerraformDependable] = [
            StorageBucketIamMember(
                self, f"bucket-{id_}", bucket=names.bucket(team.name), role=role, member=identity, depends_on=[account]
            )
            for id_, role in BUCKET_ROLES.items()
        ]
        grants += [
            ProjectIamMember(self, id_, project=settings.project_id, role=role, member=identity, depends_on=[account])
            for id_, role in project_roles(environment).items()
        ]
        self.needed_by_jobs: list[ITerraformDependable] = [self.namespace, *limits, account, *grants]
