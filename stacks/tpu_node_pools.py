"""One node pool a slice: its hosts come, go and fail together."""

from __future__ import annotations

from typing import Any

from cdktf import TerraformResourceLifecycle
from cdktf_cdktf_provider_google.compute_resource_policy import (
    ComputeResourcePolicy,
    ComputeResourcePolicyWorkloadPolicy,
)
from cdktf_cdktf_provider_google.container_node_pool import (
    ContainerNodePool,
    ContainerNodePoolAutoscaling,
    ContainerNodePoolManagement,
    ContainerNodePoolNodeConfig,
    ContainerNodePoolNodeConfigGcfsConfig,
    ContainerNodePoolNodeConfigGvnic,
    ContainerNodePoolNodeConfigReservationAffinity,
    ContainerNodePoolNodeConfigWorkloadMetadataConfig,
    ContainerNodePoolPlacementPolicy,
    ContainerNodePoolQueuedProvisioning,
    ContainerNodePoolTimeouts,
)
from constructs import Construct

from environment import CapacityMode, Environment, PoolGroup
from environment.addresses import MAX_PODS_TPU
from environment.names import POOL_GROUP_LABEL
from stacks.base import EnvironmentStack
from stacks.cluster import OAUTH_SCOPES

TPU_DISK_GB = 100

# A slice of many hosts waits for capacity and is made as one; Google gives large ones up to hours.
TIMEOUT = "120m"

RESERVATION_KEY = "compute.googleapis.com/reservation-name"


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

    def _node_pool(self, name: str, group: PoolGroup, placement: ContainerNodePoolPlacementPolicy | None) -> None:
        ContainerNodePool(
            self,
            name,
            name=name,
            cluster=self.environment.names.cluster,
            location=self.environment.settings.region,
            node_locations=[group.zone],
            max_pods_per_node=MAX_PODS_TPU,
            placement_policy=placement,
            # Google takes the hosts of the Dynamic Workload Scheduler back at their time; repairing them is refused.
            management=ContainerNodePoolManagement(auto_repair=not group.capacity.comes_and_goes, auto_upgrade=True),
            queued_provisioning=(
                ContainerNodePoolQueuedProvisioning(enabled=True) if group.capacity is CapacityMode.QUEUED else None
            ),
            node_config=self._node_config(group),
            timeouts=ContainerNodePoolTimeouts(create=TIMEOUT, update=TIMEOUT, delete=TIMEOUT),
            **_size(group),
        )

    def _node_config(self, group: PoolGroup) -> ContainerNodePoolNodeConfig:
        machine_type = group.slice.machine_type
        return ContainerNodePoolNodeConfig(
            machine_type=machine_type.name,
            disk_type=machine_type.boot_disk,
            disk_size_gb=TPU_DISK_GB,
            service_account=self.environment.names.node_account_email,
            oauth_scopes=OAUTH_SCOPES,
            labels={POOL_GROUP_LABEL: group.name},
            spot=group.capacity is CapacityMode.SPOT or None,
            flex_start=group.capacity.comes_and_goes or None,
            max_run_duration=f"{group.max_run_seconds}s" if group.max_run_seconds else None,
            reservation_affinity=_reservation(group),
            gvnic=ContainerNodePoolNodeConfigGvnic(enabled=True),
            gcfs_config=ContainerNodePoolNodeConfigGcfsConfig(enabled=True),
            workload_metadata_config=ContainerNodePoolNodeConfigWorkloadMetadataConfig(mode="GKE_METADATA"),
        )


def _size(group: PoolGroup) -> dict[str, Any]:
    """A slice is all of its hosts or none. GKE refuses the `total_` limits for slices, so the zone's are given.

    Changing the first size of a pool replaces it, and an autoscaler owns the size afterwards.
    """
    if not group.autoscaled:
        return {"node_count": group.slice.hosts}
    return {
        "initial_node_count": 0,
        "autoscaling": ContainerNodePoolAutoscaling(
            min_node_count=0, max_node_count=group.slice.hosts, location_policy="ANY"
        ),
        "lifecycle": TerraformResourceLifecycle(ignore_changes=["initial_node_count"]),
    }


def _reservation(group: PoolGroup) -> ContainerNodePoolNodeConfigReservationAffinity | None:
    if group.capacity is CapacityMode.RESERVATION:
        return ContainerNodePoolNodeConfigReservationAffinity(
            consume_reservation_type="SPECIFIC_RESERVATION", key=RESERVATION_KEY, values=[group.reservation]
        )
    if group.capacity.comes_and_goes:
        return ContainerNodePoolNodeConfigReservationAffinity(consume_reservation_type="NO_RESERVATION")
    return None
