"""One node pool a slice: its hosts come, go and fail together."""

from __future__ import annotations

from cdktf_cdktf_provider_google.compute_resource_policy import (
    ComputeResourcePolicy,
    ComputeResourcePolicyWorkloadPolicy,
)
from cdktf_cdktf_provider_google.container_node_pool import (
    ContainerNodePool,
    ContainerNodePoolManagement,
    ContainerNodePoolNodeConfig,
    ContainerNodePoolNodeConfigGcfsConfig,
    ContainerNodePoolNodeConfigGvnic,
    ContainerNodePoolNodeConfigWorkloadMetadataConfig,
    ContainerNodePoolPlacementPolicy,
    ContainerNodePoolTimeouts,
)
from constructs import Construct

from environment import Environment, PoolGroup
from environment.addresses import MAX_PODS_TPU
from environment.names import POOL_GROUP_LABEL
from stacks.base import EnvironmentStack
from stacks.cluster import OAUTH_SCOPES

TPU_DISK_GB = 100

# A slice of many hosts waits for capacity and is made as one; Google gives large ones up to hours.
TIMEOUT = "120m"


class TpuNodePools(EnvironmentStack):
    """A pool's name depends on its group and index alone, so one group's change never touches another's pools."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_, environment=environment)
        for group in environment.groups:
            placement = self._placement(group)
            for pool in group.node_pools:
                self._node_pool(pool, group, placement)
        self.output(
            "node_pools", [pool for group in environment.groups for pool in group.node_pools], "A node pool a slice"
        )

    def _placement(self, group: PoolGroup) -> ContainerNodePoolPlacementPolicy | None:
        """Multi-host slices are placed as one; a single host must not name a topology.

        tpu7x takes a workload policy, named here beside COMPACT and the topology as cluster-toolkit does: not verified
        on GKE.
        """
        if not group.slice.multi_host:
            return None
        policy_name = None
        if group.slice.needs_workload_policy:
            policy_name = ComputeResourcePolicy(
                self,
                f"workload-policy-{group.name}",
                name=self.environment.names.workload_policy(group.name),
                region=self.environment.settings.region,
                workload_policy=ComputeResourcePolicyWorkloadPolicy(
                    type="HIGH_THROUGHPUT", accelerator_topology=group.slice.topology
                ),
            ).name
        return ContainerNodePoolPlacementPolicy(
            type="COMPACT", tpu_topology=group.slice.topology, policy_name=policy_name
        )

    def _node_pool(
        self, name: str, group: PoolGroup, placement: ContainerNodePoolPlacementPolicy | None
    ) -> ContainerNodePool:
        machine_type = group.slice.machine_type
        return ContainerNodePool(
            self,
            name,
            name=name,
            cluster=self.environment.names.cluster,
            location=self.environment.settings.region,
            node_locations=[group.zone],
            node_count=group.slice.hosts,
            max_pods_per_node=MAX_PODS_TPU,
            placement_policy=placement,
            management=ContainerNodePoolManagement(auto_repair=True, auto_upgrade=True),
            node_config=ContainerNodePoolNodeConfig(
                machine_type=machine_type.name,
                disk_type=machine_type.boot_disk,
                disk_size_gb=TPU_DISK_GB,
                service_account=self.environment.names.node_account_email,
                oauth_scopes=OAUTH_SCOPES,
                labels={POOL_GROUP_LABEL: group.name},
                gvnic=ContainerNodePoolNodeConfigGvnic(enabled=True),
                gcfs_config=ContainerNodePoolNodeConfigGcfsConfig(enabled=True),
                workload_metadata_config=ContainerNodePoolNodeConfigWorkloadMetadataConfig(mode="GKE_METADATA"),
            ),
            timeouts=ContainerNodePoolTimeouts(create=TIMEOUT, update=TIMEOUT, delete=TIMEOUT),
        )
