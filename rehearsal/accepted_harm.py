"""What Google and Kueue take though it does harm: nothing of it is refused, and all of it is a finding."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from rehearsal.cloud import Attributes, Cloud
from rehearsal.google.gke import POOL
from rehearsal.google.network import CLUSTER
from rehearsal.google.tpu import is_tpu
from rehearsal.kubernetes import kueue_configuration
from rehearsal.kubernetes.helm_release import KIND as RELEASE
from rehearsal.terraform.values import block_at, value_at

_LONGEST_RECOVERY_SECONDS = 2 * 3600  # longer than it takes until hosts are made in the place of others
_EVERYBODY = "0.0.0.0/0"


def findings(cloud: Cloud) -> list[str]:
    """A line for each, with the page that says so."""
    clusters = [(item.name.rpartition("/")[2], item.attributes) for item in cloud.find(CLUSTER)]
    pools = [(item.name.rpartition("/")[2], item.attributes) for item in cloud.find(POOL)]
    return [
        *(finding for name, cluster in clusters for finding in _open_endpoint(name, cluster)),
        *(finding for name, pool in pools for finding in _cpu_nodes_in_an_ai_zone(name, pool)),
        *(finding for item in cloud.find(RELEASE) for finding in _slices_kept_without_pods(item.attributes)),
    ]


def _open_endpoint(name: str, cluster: Attributes) -> Iterator[str]:
    """The control plane's IP endpoint has a public address unless it is private or off; who reaches it is up to the
    authorized networks. The provider takes a block without networks for none at all, and no block for everybody.
    https://docs.cloud.google.com/kubernetes-engine/docs/concepts/network-isolation
    https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/resources/container_cluster#master_authorized_networks_config
    """
    endpoint = block_at(cluster, "control_plane_endpoints_config.ip_endpoints_config")
    if endpoint.get("enabled") is False or value_at(cluster, "private_cluster_config.enable_private_endpoint"):
        return
    authorized = block_at(cluster, "master_authorized_networks_config")
    networks = [network["cidr_block"] for network in authorized.get("cidr_blocks") or []]
    if not cluster.get("master_authorized_networks_config") or _EVERYBODY in networks:
        yield (
            f"cluster {name}: the IP endpoint of its control plane is open to every address; authorize networks, or "
            "none (master_authorized_networks_config)"
        )
    elif authorized.get("gcp_public_cidrs_access_enabled"):
        yield (
            f"cluster {name}: the IP endpoint of its control plane is open to all of Google Cloud's public addresses, "
            "which anybody can rent; set gcp_public_cidrs_access_enabled = false"
        )


def _cpu_nodes_in_an_ai_zone(name: str, pool: Attributes) -> Iterator[str]:
    """AI zones do not have all of Google Cloud's services; Google recommends standard zones for what is no ML workload.
    https://docs.cloud.google.com/compute/docs/regions-zones/ai-zones
    """
    config = block_at(pool, "node_config")
    if is_tpu(str(config.get("machine_type") or "")) or config.get("guest_accelerator"):
        return
    for zone in pool.get("node_locations") or []:
        if re.search("-ai[0-9]+[a-z]$", str(zone)):
            yield (
                f"node pool {name}: has no accelerators and is in AI zone {zone}; Google recommends standard zones "
                "for what is no ML workload"
            )


def _slices_kept_without_pods(release: Attributes) -> Iterator[str]:
    """A job that has lost a pod for good holds its slices until waitForPodsReady.recoveryTimeout, which is the value of
    timeout where it is not set: a week, where jobs may wait that long for their machines.
    """
    text = (release["values"].get("managerConfig") or {}).get("controllerManagerConfigYaml")
    if release["chart"] != "kueue" or not isinstance(text, str):
        return
    seconds = kueue_configuration.recovery_seconds(text)
    if seconds > _LONGEST_RECOVERY_SECONDS:
        time = "for ever" if seconds == math.inf else f"for {seconds / 3600:g} hours"
        yield (
            f"Kueue: a running job that loses a pod keeps its slices {time} without it; set "
            "waitForPodsReady.recoveryTimeout to 2h or less"
        )
