"""What the nodes of every pool have in common."""

from __future__ import annotations

from typing import Any

from cdktf_cdktf_provider_google.container_node_pool import (
    ContainerNodePoolNodeConfig,
    ContainerNodePoolNodeConfigGcfsConfig,
    ContainerNodePoolNodeConfigGvnic,
    ContainerNodePoolNodeConfigShieldedInstanceConfig,
    ContainerNodePoolNodeConfigWorkloadMetadataConfig,
)

from environment import Environment
from environment.node_capacity import BOOT_DISK_GB
from vocabulary.keys import POOL_GROUP_LABEL

# Access is decided by IAM, not by scopes. https://cloud.google.com/kubernetes-engine/docs/how-to/access-scopes
OAUTH_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]

# A slice of many hosts waits for capacity and is created as one; for a large one that can take hours.
SLICE_TIMEOUTS = dict.fromkeys(("create", "update", "delete"), "120m")

# Google adds labels of its own to those of a pool, and a read returns them all: each deploy would remove them. Ours
# never changes in a pool: its value is in the pool's name.
NODE_LABELS = "node_config[0].labels"


def node_config(
    environment: Environment, *, group: str, machine_type: str, disk_type: str, **more: Any
) -> ContainerNodePoolNodeConfig:
    """Of a pool of `group`; `more` are further arguments of ContainerNodePoolNodeConfig."""
    return ContainerNodePoolNodeConfig(
        machine_type=machine_type,
        disk_type=disk_type,
        disk_size_gb=BOOT_DISK_GB,
        service_account=environment.names.node_account_email,
        oauth_scopes=OAUTH_SCOPES,
        labels={POOL_GROUP_LABEL: group},
        gvnic=ContainerNodePoolNodeConfigGvnic(enabled=True),
        gcfs_config=ContainerNodePoolNodeConfigGcfsConfig(enabled=True),
        workload_metadata_config=ContainerNodePoolNodeConfigWorkloadMetadataConfig(mode="GKE_METADATA"),
        # Google's own blueprints boot TPU hosts so, too. GoogleCloudPlatform/cluster-toolkit, examples/gke-tpu-v6 and
        # modules/compute/gke-node-pool (enable_secure_boot)
        shielded_instance_config=ContainerNodePoolNodeConfigShieldedInstanceConfig(
            enable_secure_boot=True, enable_integrity_monitoring=True
        ),
        **more,
    )
