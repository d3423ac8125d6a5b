"""One node pool a slice: its hosts come, go and fail together."""

from __future__ import annotations

from typing import Any

from cdktf import TerraformResource, TerraformResourceLifecycle
from cdktf_cdktf_provider_google.compute_resource_policy import (
    ComputeResourcePolicy,
    ComputeResourcePolicyWorkloadPolicy,
)
from cdktf_cdktf_provider_google.container_node_pool import (
    ContainerNodePool,
    ContainerNodePoolAutoscaling,
    ContainerNodePoolManagement,
    ContainerNodePoolNodeConfig,
    ContainerNodePoolNodeConfigReservationAffinity,
    ContainerNodePoolPlacementPolicy,
    ContainerNodePoolQueuedProvisioning,
    ContainerNodePoolTimeouts,
    ContainerNodePoolUpgradeSettings,
)
from constructs import Construct

from environment import CapacityMode, Environment, PoolGroup
from environment.addresses import MAX_PODS_TPU
from stacks.base import EnvironmentStack
from stacks.nodes import NODE_LABELS, SLICE_TIMEOUTS, node_config

RESERVATION_KEY = "compute.googleapis.com/reservation-name"


class TpuNodePools(EnvironmentStack):
    """A pool's name depends on its group and index alone, so one group's change never touches another's pools."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_, environment=environment)
        for group in environment.groups:
            placement, shape = self._placement(group), self._shape(group)
            for pool in group.node_pools:
                self._node_pool(pool, group, placement, shape)
        self.output(
            "node_pools", [pool for group in environment.groups for pool in group.node_pools], "A node pool a slice"
        )

    def _shape(self, group: PoolGroup) -> TerraformResource:
        """What of a slice cannot be changed in place: a change of it replaces the group's pools.

        google 6.50.0 plans it as an update, never sends the topology, and Google refuses a size and machines that do
        not fit the old one. Terraform changes this object after it has deleted the pools, so that a deploy after one
        that stopped half-way still knows which of them have the old shape. Where it is new beside pools that were
        there before it, nothing is replaced.
        """
        shape = TerraformResource(self, f"{group.name}-shape", terraform_resource_type="terraform_data")
        machine_type = group.slice.machine_type
        shape.add_override(
            "triggers_replace",
            {
                "machine_type": machine_type.name,
                "disk_type": machine_type.boot_disk,
                "topology": group.slice.topology,
                "hosts": group.slice.hosts,
                "zone": group.zone,
            },
        )
        return shape

    def _placement(self, group: PoolGroup) -> ContainerNodePoolPlacementPolicy | None:
        """Multi-host slices are placed as one; a single host must not name a topology.

        tpu7x is refused with a compact placement and takes a workload policy in its place. The provider requires a
        type; GKE keeps none with such a policy, so anything but an empty one would be a change at every deploy.
        https://github.com/vllm-project/ci-infra/pull/547, seen on a live cluster
        """
        if not group.slice.multi_host:
            return None
        if not group.slice.needs_workload_policy:
            return ContainerNodePoolPlacementPolicy(type="COMPACT", tpu_topology=group.slice.topology)
        policy = ComputeResourcePolicy(
            self,
            f"workload-policy-{group.name}",
            name=self.environment.names.workload_policy(group.name),
            region=self.environment.settings.region,
            workload_policy=ComputeResourcePolicyWorkloadPolicy(
                type="HIGH_THROUGHPUT", accelerator_topology=group.slice.topology
            ),
        )
        return ContainerNodePoolPlacementPolicy(type="", tpu_topology=group.slice.topology, policy_name=policy.name)

    def _node_pool(
        self,
        name: str,
        group: PoolGroup,
        placement: ContainerNodePoolPlacementPolicy | None,
        shape: TerraformResource,
    ) -> None:
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
            timeouts=ContainerNodePoolTimeouts(**SLICE_TIMEOUTS),
            upgrade_settings=_upgrades(group),
            lifecycle=TerraformResourceLifecycle(
                replace_triggered_by=[f"terraform_data.{shape.friendly_unique_id}"],
                # An autoscaler owns the size after the first, and a change of the first size would replace the pool.
                ignore_changes=[NODE_LABELS, *(["initial_node_count"] if group.autoscaled else [])],
            ),
            **_size(group),
        )

    def _node_config(self, group: PoolGroup) -> ContainerNodePoolNodeConfig:
        return node_config(
            self.environment,
            group=group.name,
            machine_type=group.slice.machine_type.name,
            disk_type=group.slice.machine_type.boot_disk,
            spot=group.capacity is CapacityMode.SPOT or None,
            flex_start=group.capacity.comes_and_goes or None,
            max_run_duration=f"{group.max_run_seconds}s" if group.max_run_seconds else None,
            reservation_affinity=_reservation(group),
        )


def _size(group: PoolGroup) -> dict[str, Any]:
    """A slice is all of its hosts or none. GKE refuses the `total_` limits for slices, so the zone's are given."""
    if not group.autoscaled:
        return {"node_count": group.slice.hosts}
    return {
        "initial_node_count": 0,
        "autoscaling": ContainerNodePoolAutoscaling(
            min_node_count=0, max_node_count=group.slice.hosts, location_policy="ANY"
        ),
    }


def _upgrades(group: PoolGroup) -> ContainerNodePoolUpgradeSettings | None:
    """Google upgrades a host by creating another one first, for which a reservation that is as large as the slices
    has no room. The hosts of a slice of many are all recreated at once, so that this is for single ones.
    https://cloud.google.com/kubernetes-engine/docs/how-to/node-upgrades-quota
    """
    if group.capacity is not CapacityMode.RESERVATION or group.slice.multi_host:
        return None
    return ContainerNodePoolUpgradeSettings(max_surge=0, max_unavailable=1)


def _reservation(group: PoolGroup) -> ContainerNodePoolNodeConfigReservationAffinity | None:
    if group.capacity is CapacityMode.RESERVATION:
        return ContainerNodePoolNodeConfigReservationAffinity(
            consume_reservation_type="SPECIFIC_RESERVATION", key=RESERVATION_KEY, values=[group.reservation]
        )
    if group.capacity.comes_and_goes:
        return ContainerNodePoolNodeConfigReservationAffinity(consume_reservation_type="NO_RESERVATION")
    return None
