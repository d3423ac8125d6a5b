"""What outlives the cluster: APIs, network, node identity, a bucket per team, the image registry, TensorBoard."""

from __future__ import annotations

from cdktf import ITerraformDependable
from cdktf_cdktf_provider_google.artifact_registry_repository import (
    ArtifactRegistryRepository,
    ArtifactRegistryRepositoryCleanupPolicies,
    ArtifactRegistryRepositoryCleanupPoliciesCondition,
    ArtifactRegistryRepositoryCleanupPoliciesMostRecentVersions,
)
from cdktf_cdktf_provider_google.artifact_registry_repository_iam_member import ArtifactRegistryRepositoryIamMember
from cdktf_cdktf_provider_google.compute_firewall import ComputeFirewall, ComputeFirewallAllow
from cdktf_cdktf_provider_google.compute_network import ComputeNetwork
from cdktf_cdktf_provider_google.compute_router import ComputeRouter
from cdktf_cdktf_provider_google.compute_router_nat import ComputeRouterNat, ComputeRouterNatLogConfig
from cdktf_cdktf_provider_google.compute_subnetwork import ComputeSubnetwork, ComputeSubnetworkSecondaryIpRange
from cdktf_cdktf_provider_google.project_iam_custom_role import ProjectIamCustomRole
from cdktf_cdktf_provider_google.project_iam_member import ProjectIamMember
from cdktf_cdktf_provider_google.project_service import ProjectService
from cdktf_cdktf_provider_google.service_account import ServiceAccount
from cdktf_cdktf_provider_google.storage_bucket import (
    StorageBucket,
    StorageBucketHierarchicalNamespace,
    StorageBucketSoftDeletePolicy,
)
from cdktf_cdktf_provider_google.vertex_ai_tensorboard import VertexAiTensorboard
from constructs import Construct

from environment import Environment, Team
from environment.services import SERVICES
from stacks.base import EnvironmentStack

# The largest that Google Cloud routes between hosts; slices reach one another over this network.
# https://cloud.google.com/vpc/docs/mtu
MTU_BYTES = 8896

# Deleted checkpoints can be brought back for a week, which is also Google's default.
SOFT_DELETE_SECONDS = 7 * 24 * 3600

WEBHOOK_PORT = "9443"

# What manifests/tensorboard/upload.py calls, and no more: it writes experiments, and for each a context in Vertex ML
# Metadata, whose store in a region the first upload creates. roles/aiplatform.user would also let a team run Vertex
# jobs. https://cloud.google.com/vertex-ai/docs/general/iam-permissions
TENSORBOARD_WRITER_PERMISSIONS = [
    f"aiplatform.{kind}.{verb}"
    for kind, verbs in {
        "artifacts": "create get",
        "contexts": "addContextArtifactsAndExecutions addContextChildren create get update",
        "executions": "get",
        "locations": "get",
        "metadataStores": "create get",
        "tensorboardExperiments": "create get write",
        "tensorboardRuns": "create get",
        "tensorboardTimeSeries": "create list",
        "tensorboards": "get list",
    }.items()
    for verb in verbs.split()
]


class Foundation(EnvironmentStack):
    """Kept when everything else is torn down: it holds the data and costs almost nothing."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_, environment=environment)
        settings = environment.settings
        self.data_protection = settings.deletion_protection or not settings.destroy_data
        # A service that is switched off takes other people's resources with it, so destroy leaves all of them on.
        self.services: dict[str, ITerraformDependable] = {
            service: ProjectService(self, f"service-{service}", service=service, disable_on_destroy=False)
            for service in SERVICES
        }
        nodes = self._node_identity()
        self._network(nodes)
        self._registry(nodes)
        self._tensorboard()
        for team in environment.teams:
            self._bucket(team)

    def _node_identity(self) -> ServiceAccount:
        """Nodes have an account of their own, able to log, report metrics and pull our images: nothing else.

        Image streaming asks whether the account may use the project's services, and the nodes' role does not say so.
        https://cloud.google.com/kubernetes-engine/docs/how-to/image-streaming#requirements
        """
        nodes = ServiceAccount(
            self,
            "node-account",
            account_id=self.environment.names.node_account,
            display_name="Nodes of the TPU training cluster",
            depends_on=[self.services["iam.googleapis.com"]],
        )
        for id_, role in (
            ("node-account-role", "roles/container.defaultNodeServiceAccount"),
            ("node-account-streams", "roles/serviceusage.serviceUsageConsumer"),
        ):
            ProjectIamMember(
                self,
                id_,
                project=self.environment.settings.project_id,
                role=role,
                member=nodes.member,
                depends_on=[self.services["cloudresourcemanager.googleapis.com"]],
            )
        self.output("node_service_account", nodes.email, "The service account that all nodes run as")
        return nodes

    def _network(self, nodes: ServiceAccount) -> None:
        """The network and the subnet are protected as the cluster on them is: a name, a region or a smaller range in
        the settings would replace them, and Google would stop that half-way.
        """
        settings, names = self.environment.settings, self.environment.names
        network = ComputeNetwork(
            self,
            "network",
            name=names.network,
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            mtu=MTU_BYTES,
            lifecycle=self.protected(settings.deletion_protection),
            depends_on=[self.services["compute.googleapis.com"]],
        )
        ComputeSubnetwork(
            self,
            "subnet",
            name=names.subnet,
            region=settings.region,
            network=network.id,
            ip_cidr_range=str(settings.subnet_cidr),
            secondary_ip_range=[
                ComputeSubnetworkSecondaryIpRange(range_name=names.pods_range, ip_cidr_range=str(settings.pods_cidr)),
                ComputeSubnetworkSecondaryIpRange(
                    range_name=names.services_range, ip_cidr_range=str(settings.services_cidr)
                ),
            ],
            private_ip_google_access=True,
            lifecycle=self.protected(settings.deletion_protection),
        )
        router = ComputeRouter(self, "router", name=names.router, region=settings.region, network=network.id)
        ComputeRouterNat(
            self,
            "nat",
            name=names.nat,
            router=router.name,
            region=settings.region,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
            log_config=ComputeRouterNatLogConfig(enable=True, filter="ERRORS_ONLY"),
        )
        if settings.control_plane_cidr:
            ComputeFirewall(
                self,
                "webhook-firewall",
                name=names.webhook_firewall,
                description="The control plane calls the webhooks of Kueue and JobSet on the nodes",
                network=network.id,
                direction="INGRESS",
                source_ranges=[str(settings.control_plane_cidr)],
                target_service_accounts=[nodes.email],
                allow=[ComputeFirewallAllow(protocol="tcp", ports=[WEBHOOK_PORT])],
            )
        self.output("network", network.name, "The VPC network")

    def _registry(self, nodes: ServiceAccount) -> None:
        settings, names = self.environment.settings, self.environment.names
        registry = ArtifactRegistryRepository(
            self,
            "registry",
            repository_id=names.registry,
            location=settings.region,
            format="DOCKER",
            description="Images of the training workloads",
            cleanup_policies=[
                ArtifactRegistryRepositoryCleanupPolicies(
                    id="delete-untagged-after-30-days",
                    action="DELETE",
                    condition=ArtifactRegistryRepositoryCleanupPoliciesCondition(
                        tag_state="UNTAGGED", older_than="2592000s"
                    ),
                ),
                ArtifactRegistryRepositoryCleanupPolicies(
                    id="keep-the-last-ten",
                    action="KEEP",
                    most_recent_versions=ArtifactRegistryRepositoryCleanupPoliciesMostRecentVersions(keep_count=10),
                ),
            ],
            lifecycle=self.protected(self.data_protection),
            depends_on=[self.services["artifactregistry.googleapis.com"]],
        )
        ArtifactRegistryRepositoryIamMember(
            self,
            "registry-reader",
            repository=registry.name,
            location=settings.region,
            role="roles/artifactregistry.reader",
            member=nodes.member,
        )
        self.output("registry", self.environment.names.registry_url, "Where to push images")

    def _tensorboard(self) -> None:
        names = self.environment.names
        tensorboard = VertexAiTensorboard(
            self,
            "tensorboard",
            display_name=names.tensorboard,
            description="Experiments of the training environment, shared by its teams",
            region=self.environment.settings.tensorboard_region,
            lifecycle=self.protected(self.data_protection),
            depends_on=[self.services["aiplatform.googleapis.com"]],
        )
        ProjectIamCustomRole(
            self,
            "tensorboard-writer",
            role_id=names.tensorboard_role,
            title=f"{names.tensorboard}: write experiments",
            permissions=TENSORBOARD_WRITER_PERMISSIONS,
            depends_on=[self.services["iam.googleapis.com"]],
        )
        self.output("tensorboard", tensorboard.name, "Resource name of the Vertex AI TensorBoard")

    def _bucket(self, team: Team) -> None:
        """A bucket a team: IAM conditions can scope reading to a prefix, but not listing.

        https://cloud.google.com/storage/docs/access-control/iam#conditions
        """
        bucket = StorageBucket(
            self,
            f"bucket-{team.name}",
            name=self.environment.names.bucket(team.name),
            location=self.environment.settings.region,
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            hierarchical_namespace=StorageBucketHierarchicalNamespace(enabled=True),
            soft_delete_policy=StorageBucketSoftDeletePolicy(retention_duration_seconds=SOFT_DELETE_SECONDS),
            force_destroy=not self.data_protection,
            lifecycle=self.protected(self.data_protection),
            depends_on=[self.services["storage.googleapis.com"]],
        )
        self.output(f"bucket_{team.name}", bucket.url, f"Data and checkpoints of team {team.name}")
