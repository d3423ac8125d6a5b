"""The private regional GKE cluster and its CPU node pools."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from cdktf import TerraformResourceLifecycle
from cdktf_cdktf_provider_google.container_cluster import (
    ContainerCluster,
    ContainerClusterAddonsConfig,
    ContainerClusterAddonsConfigGcePersistentDiskCsiDriverConfig,
    ContainerClusterAddonsConfigGcsFuseCsiDriverConfig,
    ContainerClusterAddonsConfigRayOperatorConfig,
    ContainerClusterAddonsConfigRayOperatorConfigRayClusterLoggingConfig,
    ContainerClusterAddonsConfigRayOperatorConfigRayClusterMonitoringConfig,
    ContainerClusterAnonymousAuthenticationConfig,
    ContainerClusterAuthenticatorGroupsConfig,
    ContainerClusterClusterAutoscaling,
    ContainerClusterClusterAutoscalingAutoProvisioningDefaults,
    ContainerClusterControlPlaneEndpointsConfig,
    ContainerClusterControlPlaneEndpointsConfigDnsEndpointConfig,
    ContainerClusterControlPlaneEndpointsConfigIpEndpointsConfig,
    ContainerClusterCostManagementConfig,
    ContainerClusterIpAllocationPolicy,
    ContainerClusterLoggingConfig,
    ContainerClusterMaintenancePolicy,
    ContainerClusterMaintenancePolicyDailyMaintenanceWindow,
    ContainerClusterMaintenancePolicyMaintenanceExclusion,
    ContainerClusterMaintenancePolicyMaintenanceExclusionExclusionOptions,
    ContainerClusterMonitoringConfig,
    ContainerClusterMonitoringConfigManagedPrometheus,
    ContainerClusterNodeConfig,
    ContainerClusterNodePoolAutoConfig,
    ContainerClusterNodePoolAutoConfigNodeKubeletConfig,
    ContainerClusterNodePoolDefaults,
    ContainerClusterNodePoolDefaultsNodeConfigDefaults,
    ContainerClusterNodePoolDefaultsNodeConfigDefaultsGcfsConfig,
    ContainerClusterPrivateClusterConfig,
    ContainerClusterRbacBindingConfig,
    ContainerClusterReleaseChannel,
    ContainerClusterSecurityPostureConfig,
    ContainerClusterServiceExternalIpsConfig,
    ContainerClusterTimeouts,
    ContainerClusterWorkloadIdentityConfig,
)
from cdktf_cdktf_provider_google.container_node_pool import (
    ContainerNodePool,
    ContainerNodePoolAutoscaling,
    ContainerNodePoolManagement,
    ContainerNodePoolNodeConfigTaint,
    ContainerNodePoolTimeouts,
)
from constructs import Construct

from environment import Environment
from environment.addresses import MAX_PODS_CPU
from environment.cpu_machine_types import SYSTEM_NODES, CpuMachineType, cpu_machine_type, system_machine_type
from stacks.base import EnvironmentStack
from stacks.nodes import NODE_LABELS, OAUTH_SCOPES, node_config
from vocabulary.keys import CPU_GROUP, SYSTEM_GROUP, SYSTEM_TAINT

# APISERVER says which webhook could not be called, and why.
LOGGED_COMPONENTS = ["SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER"]
# All but the first are billed by samples, so only those that a query asks for (stacks/metrics.json).
MONITORED_COMPONENTS = ["SYSTEM_COMPONENTS", "POD", "JOBSET"]

# Of a cluster whose IP endpoints are off it says nothing, and yet the provider reads it back: what Google answers must
# not be a change at every deploy (flattenPrivateClusterConfig of google 6.50.0).
PUBLIC_ENDPOINT = "private_cluster_config[0].enable_private_endpoint"


class Cluster(EnvironmentStack):
    """One cluster in REGION with its CPU nodes in one zone, or an Autopilot one; nodes have no public address."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_, environment=environment)
        settings = environment.settings
        cluster = self._cluster()
        if not settings.autopilot:
            self._cpu_pool(cluster)
            self._system_pool(cluster)
        self.output("cluster_name", cluster.name, "The GKE cluster")
        self.output(
            "get_credentials",
            f"gcloud container clusters get-credentials {environment.names.cluster}"
            f" --dns-endpoint --region {settings.region} --project {settings.project_id}",
            "The command that lets kubectl reach the cluster",
        )

    def _cluster(self) -> ContainerCluster:
        settings, names = self.environment.settings, self.environment.names
        project = f"projects/{settings.project_id}"
        return ContainerCluster(
            self,
            "cluster",
            name=names.cluster,
            location=settings.region,
            network=f"{project}/global/networks/{names.network}",
            subnetwork=f"{project}/regions/{settings.region}/subnetworks/{names.subnet}",
            networking_mode="VPC_NATIVE",
            ip_allocation_policy=ContainerClusterIpAllocationPolicy(
                cluster_secondary_range_name=names.pods_range, services_secondary_range_name=names.services_range
            ),
            private_cluster_config=ContainerClusterPrivateClusterConfig(
                enable_private_nodes=True,
                master_ipv4_cidr_block=str(settings.control_plane_cidr) if settings.control_plane_cidr else None,
            ),
            # People and pipelines use the DNS endpoint, where IAM decides. Nodes keep their own way to the control
            # plane.
            # https://cloud.google.com/kubernetes-engine/docs/concepts/network-isolation#dns-based_endpoint
            control_plane_endpoints_config=ContainerClusterControlPlaneEndpointsConfig(
                dns_endpoint_config=ContainerClusterControlPlaneEndpointsConfigDnsEndpointConfig(
                    allow_external_traffic=True
                ),
                ip_endpoints_config=ContainerClusterControlPlaneEndpointsConfigIpEndpointsConfig(enabled=False),
            ),
            **_hardened(),
            release_channel=ContainerClusterReleaseChannel(channel=settings.release_channel),
            min_master_version=settings.gke_version or None,
            workload_identity_config=ContainerClusterWorkloadIdentityConfig(
                workload_pool=f"{settings.project_id}.svc.id.goog"
            ),
            authenticator_groups_config=(
                ContainerClusterAuthenticatorGroupsConfig(security_group=settings.rbac_security_group)
                if settings.rbac_security_group
                else None
            ),
            addons_config=ContainerClusterAddonsConfig(
                gcs_fuse_csi_driver_config=ContainerClusterAddonsConfigGcsFuseCsiDriverConfig(enabled=True),
                gce_persistent_disk_csi_driver_config=ContainerClusterAddonsConfigGcePersistentDiskCsiDriverConfig(
                    enabled=True
                ),
                ray_operator_config=[
                    ContainerClusterAddonsConfigRayOperatorConfig(
                        enabled=True,
                        ray_cluster_logging_config=ContainerClusterAddonsConfigRayOperatorConfigRayClusterLoggingConfig(
                            enabled=True
                        ),
                        ray_cluster_monitoring_config=ContainerClusterAddonsConfigRayOperatorConfigRayClusterMonitoringConfig(
                            enabled=True
                        ),
                    )
                ],
            ),
            logging_config=ContainerClusterLoggingConfig(enable_components=LOGGED_COMPONENTS),
            monitoring_config=ContainerClusterMonitoringConfig(
                enable_components=MONITORED_COMPONENTS,
                managed_prometheus=ContainerClusterMonitoringConfigManagedPrometheus(enabled=True),
            ),
            cost_management_config=ContainerClusterCostManagementConfig(enabled=True),
            maintenance_policy=self._maintenance(),
            # The provider's own protection would refuse only after queues and slices are gone, and lifting it takes an
            # apply.
            deletion_protection=False,
            timeouts=ContainerClusterTimeouts(create="60m", update="60m", delete="60m"),
            **(self._autopilot() if settings.autopilot else self._standard()),
        )

    def _standard(self) -> dict[str, Any]:
        """The arguments of a cluster whose nodes are in pools of ours."""
        settings, names = self.environment.settings, self.environment.names
        return {
            "node_locations": [settings.zone_of_cpu_nodes],
            "datapath_provider": "ADVANCED_DATAPATH",
            "enable_shielded_nodes": True,
            "node_pool_defaults": ContainerClusterNodePoolDefaults(
                node_config_defaults=ContainerClusterNodePoolDefaultsNodeConfigDefaults(
                    gcfs_config=ContainerClusterNodePoolDefaultsNodeConfigDefaultsGcfsConfig(enabled=True),
                    # Of every pool: that port shows the pods of a node, with their environment, to whoever asks. It is
                    # not in the pools, because the provider would send "cpu_cfs_quota": false beside it, and nodes
                    # would ignore limits of cores (expandKubeletConfig of google 6.50.0).
                    # https://cloud.google.com/kubernetes-engine/docs/how-to/disable-kubelet-readonly-port
                    insecure_kubelet_readonly_port_enabled="FALSE",
                )
            ),
            # GKE insists on a default pool. It is created small, with our identity instead of the project's editor
            # account, and removed.
            "remove_default_node_pool": True,
            "initial_node_count": 1,
            "node_config": ContainerClusterNodeConfig(
                service_account=names.node_account_email, oauth_scopes=OAUTH_SCOPES
            ),
            # Every pool says where it is. Of a cluster that changes its zones GKE moves all of them, slices too.
            # https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/ClusterUpdate (desiredLocations)
            "lifecycle": self.protected(
                settings.deletion_protection, ignore_changes=["node_config", "node_locations", PUBLIC_ENDPOINT]
            ),
        }

    def _autopilot(self) -> dict[str, Any]:
        """The arguments of a cluster whose nodes GKE makes. What the others say, it decides; google 6.50.0 refuses most
        of it (ConflictsWith in resource_container_cluster.go), and a node_config would replace the cluster at every
        deploy (hashicorp/terraform-provider-google issue 12064).
        """
        return {
            "enable_autopilot": True,
            "cluster_autoscaling": ContainerClusterClusterAutoscaling(
                auto_provisioning_defaults=ContainerClusterClusterAutoscalingAutoProvisioningDefaults(
                    service_account=self.environment.names.node_account_email, oauth_scopes=OAUTH_SCOPES
                )
            ),
            "node_pool_auto_config": ContainerClusterNodePoolAutoConfig(
                node_kubelet_config=ContainerClusterNodePoolAutoConfigNodeKubeletConfig(
                    insecure_kubelet_readonly_port_enabled="FALSE"
                )
            ),
            "lifecycle": self.protected(
                self.environment.settings.deletion_protection, ignore_changes=[PUBLIC_ENDPOINT]
            ),
        }

    def _maintenance(self) -> ContainerClusterMaintenancePolicy:
        settings = self.environment.settings
        exclusion = None
        if settings.maintenance_exclusion_start and settings.maintenance_exclusion_end:
            exclusion = [
                ContainerClusterMaintenancePolicyMaintenanceExclusion(
                    exclusion_name="training",
                    start_time=_rfc3339(settings.maintenance_exclusion_start),
                    end_time=_rfc3339(settings.maintenance_exclusion_end),
                    exclusion_options=ContainerClusterMaintenancePolicyMaintenanceExclusionExclusionOptions(
                        scope="NO_MINOR_OR_NODE_UPGRADES"
                    ),
                )
            ]
        return ContainerClusterMaintenancePolicy(
            daily_maintenance_window=ContainerClusterMaintenancePolicyDailyMaintenanceWindow(
                start_time=settings.maintenance_start
            ),
            maintenance_exclusion=exclusion,
        )

    def _cpu_pool(self, cluster: ContainerCluster) -> None:
        """Where everything of the teams runs that is not a TPU worker: drivers, uploaders, Ray heads."""
        settings = self.environment.settings
        self._pool(
            cluster,
            "cpu-pool",
            name=self.environment.names.cpu_pool,
            group=CPU_GROUP,
            machine_type=cpu_machine_type(settings.cpu_machine_type),
            initial_node_count=settings.cpu_min_nodes,
            autoscaling=ContainerNodePoolAutoscaling(
                min_node_count=settings.cpu_min_nodes, max_node_count=settings.cpu_max_nodes
            ),
            # Changing the first size of a pool replaces it; the autoscaler owns the size afterwards.
            lifecycle=TerraformResourceLifecycle(ignore_changes=[NODE_LABELS, "initial_node_count"]),
        )

    def _system_pool(self, cluster: ContainerCluster) -> None:
        """Where Kueue, JobSet, the gate and the drains run, and no pod of a team: whoever breaks out of a container
        has the tokens of all pods of the node, and with JobSet's any webhook of the cluster can be rewritten.
        """
        self._pool(
            cluster,
            "system-pool",
            name=self.environment.names.system_pool,
            group=SYSTEM_GROUP,
            machine_type=system_machine_type(self.environment.settings.cpu_machine_type),
            taint=[ContainerNodePoolNodeConfigTaint(key=SYSTEM_TAINT, value="true", effect="NO_SCHEDULE")],
            node_count=SYSTEM_NODES,
            lifecycle=TerraformResourceLifecycle(ignore_changes=[NODE_LABELS]),
        )

    def _pool(
        self,
        cluster: ContainerCluster,
        id_: str,
        *,
        name: str,
        group: str,
        machine_type: CpuMachineType,
        taint: list[ContainerNodePoolNodeConfigTaint] | None = None,
        **more: Any,
    ) -> None:
        """A pool without TPUs; `more` are further arguments of ContainerNodePool."""
        settings = self.environment.settings
        ContainerNodePool(
            self,
            id_,
            name=name,
            cluster=cluster.name,
            location=settings.region,
            node_locations=[settings.zone_of_cpu_nodes],
            max_pods_per_node=MAX_PODS_CPU,
            management=ContainerNodePoolManagement(auto_repair=True, auto_upgrade=True),
            node_config=node_config(
                self.environment,
                group=group,
                machine_type=machine_type.name,
                disk_type=machine_type.boot_disk,
                taint=taint,
            ),
            timeouts=ContainerNodePoolTimeouts(create="60m", update="60m", delete="60m"),
            **more,
        )


def _hardened() -> dict[str, Any]:
    """Arguments that close what a cluster leaves open, or may, by default.

    https://cloud.google.com/kubernetes-engine/docs/how-to/hardening-your-cluster
    """
    return {
        # Without credentials the control plane answers /livez, /readyz and /healthz, and nothing else.
        "anonymous_authentication_config": ContainerClusterAnonymousAuthenticationConfig(mode="LIMITED"),
        # A role for system:authenticated would be one for everybody with a Google account.
        "rbac_binding_config": ContainerClusterRbacBindingConfig(
            enable_insecure_binding_system_unauthenticated=False, enable_insecure_binding_system_authenticated=False
        ),
        # With an external IP, a Service takes over the traffic of all pods to that address (CVE-2020-8554).
        "service_external_ips_config": ContainerClusterServiceExternalIpsConfig(enabled=False),
        # Free: GKE looks for risky fields in running pods, and the console lists them.
        # https://cloud.google.com/kubernetes-engine/docs/how-to/protect-workload-configuration
        "security_posture_config": ContainerClusterSecurityPostureConfig(mode="BASIC"),
    }


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
