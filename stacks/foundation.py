"""What outlives the cluster: APIs, network, node identity, a bucket per team, image registries, TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network

from cdktf import ITerraformDependable
from cdktf_cdktf_provider_google.artifact_registry_repository import (
    ArtifactRegistryRepository,
    ArtifactRegistryRepositoryCleanupPolicies,
    ArtifactRegistryRepositoryCleanupPoliciesCondition,
    ArtifactRegistryRepositoryCleanupPoliciesMostRecentVersions,
    ArtifactRegistryRepositoryDockerConfig,
)
from cdktf_cdktf_provider_google.artifact_registry_repository_iam_member import ArtifactRegistryRepositoryIamMember
from cdktf_cdktf_provider_google.compute_firewall import ComputeFirewall, ComputeFirewallAllow
from cdktf_cdktf_provider_google.compute_network import ComputeNetwork
from cdktf_cdktf_provider_google.compute_router import ComputeRouter
from cdktf_cdktf_provider_google.compute_router_nat import ComputeRouterNat, ComputeRouterNatLogConfig
from cdktf_cdktf_provider_google.compute_subnetwork import ComputeSubnetwork, ComputeSubnetworkSecondaryIpRange
from cdktf_cdktf_provider_google.dns_managed_zone import (
    DnsManagedZone,
    DnsManagedZonePrivateVisibilityConfig,
    DnsManagedZonePrivateVisibilityConfigNetworks,
)
from cdktf_cdktf_provider_google.dns_record_set import DnsRecordSet
from cdktf_cdktf_provider_google.project_iam_audit_config import (
    ProjectIamAuditConfig,
    ProjectIamAuditConfigAuditLogConfig,
)
from cdktf_cdktf_provider_google.project_iam_custom_role import ProjectIamCustomRole
from cdktf_cdktf_provider_google.project_iam_member import ProjectIamMember
from cdktf_cdktf_provider_google.project_service import ProjectService
from cdktf_cdktf_provider_google.service_account import ServiceAccount
from cdktf_cdktf_provider_google.storage_bucket import (
    StorageBucket,
    StorageBucketHierarchicalNamespace,
    StorageBucketLifecycleRule,
    StorageBucketLifecycleRuleAction,
    StorageBucketLifecycleRuleCondition,
    StorageBucketSoftDeletePolicy,
)
from cdktf_cdktf_provider_google.storage_bucket_iam_member import (
    StorageBucketIamMember,
    StorageBucketIamMemberCondition,
)
from cdktf_cdktf_provider_google.vertex_ai_tensorboard import VertexAiTensorboard
from constructs import Construct

from environment import Environment, Team
from environment.names import GOOGLE_APIS
from environment.services import EGRESS_SERVICES, SERVICES
from stacks.base import EnvironmentStack

# The largest that Google Cloud routes between hosts; slices reach one another over this network.
# https://cloud.google.com/vpc/docs/mtu
MTU_BYTES = 8896

# Deleted checkpoints can be brought back for a week, which is also Google's default.
SOFT_DELETE_SECONDS = 7 * 24 * 3600

WEBHOOK_PORT = "9443"

# The Data Access audit logs that say who read a state, a record, a checkpoint or what a pod logged, and who replaced or
# deleted an object. Writes in clusters are Admin Activity, which is always logged, or the status of pods.
# https://cloud.google.com/storage/docs/audit-logging
# https://cloud.google.com/kubernetes-engine/docs/concepts/audit-policy
DATA_ACCESS_LOGS = {"storage": ("DATA_READ", "DATA_WRITE"), "container": ("DATA_READ",)}

BUILDS_KEPT_DAYS = 30  # source and logs of image builds; what was built is in the registry

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
            for service in (*SERVICES, *(EGRESS_SERVICES if settings.egress == "google" else ()))
        }
        nodes = self._node_identity()
        self._network(nodes)
        names = environment.names
        registry = self._registry("registry", names.registry, "Images of the training workloads")
        builder = self._registry("builder-registry", names.builder_registry, "The image of the pipeline's builds")
        self._registry_member("registry-reader", registry, "reader", nodes)
        self._image_builds([registry, builder])
        self.output("registry", names.registry_url, "Where to push images")
        submit = " ".join(("gcloud builds submit --config cloudbuild/builder.yaml", *names.image_build_options))
        image = f"{names.builder_registry_url}/builder"
        self.output("builder", f"{submit} --substitutions _IMAGE={image}", "Builds the image of the pipeline's builds")
        self._tensorboard()
        for team in environment.teams:
            self._bucket(team)
        if settings.data_access_logs:
            self._data_access_logs()

    def _data_access_logs(self) -> None:
        """They are a part of the project's IAM policy, and whoever may change that may switch them off, under any
        condition about roles. So they are here, where the nightly drift check sees them go.
        """
        for service, log_types in DATA_ACCESS_LOGS.items():
            ProjectIamAuditConfig(
                self,
                f"data-access-{service}",
                project=self.environment.settings.project_id,
                service=f"{service}.googleapis.com",
                audit_log_config=[ProjectIamAuditConfigAuditLogConfig(log_type=log_type) for log_type in log_types],
                depends_on=[self.services["cloudresourcemanager.googleapis.com"]],
            )

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
        if settings.egress == "google":
            self._names_of_google(network)
        self.output("network", network.name, "The VPC network")

    def _names_of_google(self, network: ComputeNetwork) -> None:
        """The network's default route leads there, which Google keeps within its own network.

        https://cloud.google.com/vpc/docs/configure-private-google-access#config-routing
        """
        for name, domain in self.environment.names.dns_zones.items():
            zone = DnsManagedZone(
                self,
                f"names-{domain}",
                name=name,
                dns_name=f"{domain}.",
                description=f"Leads {domain} to private.googleapis.com",
                visibility="private",
                private_visibility_config=DnsManagedZonePrivateVisibilityConfig(
                    networks=[DnsManagedZonePrivateVisibilityConfigNetworks(network_url=network.id)]
                ),
                depends_on=[self.services["dns.googleapis.com"]],
            )
            addresses = [str(address) for address in IPv4Network(GOOGLE_APIS[0])]
            for id_, record, type_, values in (
                ("addresses", f"{domain}.", "A", addresses),
                ("below", f"*.{domain}.", "CNAME", [f"{domain}."]),
            ):
                DnsRecordSet(
                    self, f"{id_}-{domain}", managed_zone=zone.name, name=record, type=type_, ttl=300, rrdatas=values
                )

    def _registry(self, id_: str, name: str, description: str) -> ArtifactRegistryRepository:
        """A tag is never moved to another image, so who may push replaces nothing that others run by its tag.

        https://cloud.google.com/artifact-registry/docs/docker/names#versions
        """
        return ArtifactRegistryRepository(
            self,
            id_,
            repository_id=name,
            location=self.environment.settings.region,
            format="DOCKER",
            description=description,
            docker_config=ArtifactRegistryRepositoryDockerConfig(immutable_tags=True),
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

    def _registry_member(
        self, id_: str, registry: ArtifactRegistryRepository, role: str, account: ServiceAccount
    ) -> None:
        ArtifactRegistryRepositoryIamMember(
            self,
            id_,
            repository=registry.name,
            location=self.environment.settings.region,
            role=f"roles/artifactregistry.{role}",
            member=account.member,
        )

    def _image_builds(self, registries: Sequence[ArtifactRegistryRepository]) -> None:
        """Builds of images run what a Dockerfile says, so they have an account of their own. It reads their source,
        writes their log, pushes, and nothing else.

        The project's default account of builds often has no role at all, and where it has one, far too much:
        https://cloud.google.com/build/docs/cloud-build-service-account-updates
        """
        names = self.environment.names
        builds = ServiceAccount(
            self,
            "build-account",
            account_id=names.build_account,
            display_name="Builds images",
            depends_on=[self.services["iam.googleapis.com"]],
        )
        for registry in registries:
            self._registry_member(f"{registry.node.id}-writer", registry, "writer", builds)
        bucket = StorageBucket(
            self,
            "build-bucket",
            name=names.build_bucket,
            location=self.environment.settings.region,
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            lifecycle_rule=[
                StorageBucketLifecycleRule(
                    action=StorageBucketLifecycleRuleAction(type="Delete"),
                    condition=StorageBucketLifecycleRuleCondition(age=BUILDS_KEPT_DAYS),
                )
            ],
            force_destroy=not self.data_protection,
            depends_on=[self.services["storage.googleapis.com"]],
        )
        logs = f"projects/_/buckets/{names.build_bucket}/objects/logs/"
        only_logs = StorageBucketIamMemberCondition(title="only logs", expression=f'resource.name.startsWith("{logs}")')
        # Cloud Build asks for the bucket, and replaces the log as it grows.
        # https://cloud.google.com/build/docs/securing-builds/configure-user-specified-service-accounts
        for role, condition in (("legacyBucketReader", None), ("objectViewer", None), ("objectUser", only_logs)):
            StorageBucketIamMember(
                self,
                f"build-bucket-{role}",
                bucket=bucket.name,
                role=f"roles/storage.{role}",
                member=builds.member,
                condition=condition,
            )

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
