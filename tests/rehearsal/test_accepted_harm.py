"""What a rehearsal finds fault with though Google takes it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from rehearsal.accepted_harm import findings
from rehearsal.google.locations import offer
from tests.rehearsal.fake import FakeCloud

CLUSTER = "google_container_cluster.cluster"
CPU = "google_container_node_pool.cpu-pool"
TPU = "google_container_node_pool.tpu-0"


def test_the_product_has_no_findings(deployed: FakeCloud, fleet: FakeCloud) -> None:
    assert findings(deployed.cloud) == []
    assert findings(fleet.cloud) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"master_authorized_networks_config": None}, "is open to every address"),
        (
            {
                "master_authorized_networks_config": {
                    "cidr_blocks": [{"cidr_block": "10.0.0.0/8"}, {"cidr_block": "0.0.0.0/0"}],
                    "gcp_public_cidrs_access_enabled": False,
                }
            },
            "is open to every address",
        ),
        (
            {"master_authorized_networks_config": {"gcp_public_cidrs_access_enabled": True}},
            "is open to all of Google Cloud's public addresses",
        ),
    ],
)
def test_an_ip_endpoint_that_strangers_reach_is_a_finding(
    deployed: FakeCloud, changes: dict[str, object], words: str
) -> None:
    deployed.again(CLUSTER, control_plane_endpoints_config__ip_endpoints_config={"enabled": True}, **changes)
    (finding,) = findings(deployed.cloud)
    assert finding.startswith("cluster tpu-cluster: the IP endpoint of its control plane " + words)


@pytest.mark.parametrize(
    "changes",
    [
        {"private_cluster_config__enable_private_endpoint": True},
        {"master_authorized_networks_config": {"cidr_blocks": [{"cidr_block": "10.0.0.0/8"}]}},
    ],
)
def test_an_ip_endpoint_that_strangers_do_not_reach_is_none(deployed: FakeCloud, changes: dict[str, object]) -> None:
    deployed.again(CLUSTER, control_plane_endpoints_config__ip_endpoints_config={"enabled": True}, **changes)
    assert findings(deployed.cloud) == []


def test_cpu_nodes_in_an_ai_zone_are_a_finding_and_slices_there_are_none(deployed: FakeCloud) -> None:
    offer(deployed.cloud, "us-east5-ai1a")
    for pool in (CPU, TPU):
        deployed.again(pool, node_locations=["us-east5-ai1a"])
    (finding,) = findings(deployed.cloud)
    assert finding.startswith("node pool cpu: has no accelerators and is in AI zone us-east5-ai1a")


def with_waiting(fake: FakeCloud, **waiting: str) -> None:
    """Kueue with this waitForPodsReady in its configuration."""
    release = "helm_release.kueue"
    values: Any = json.loads(fake.resources[release].config["values"][0])
    configuration = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    configuration["waitForPodsReady"] = waiting
    values["managerConfig"]["controllerManagerConfigYaml"] = yaml.safe_dump(configuration)
    fake.change(release, values=[json.dumps(values)])


@pytest.mark.parametrize(
    ("waiting", "time"),
    [
        ({"timeout": "168h"}, "for 168 hours"),
        ({"timeout": "30m", "recoveryTimeout": "2h0m1s"}, "for 2.00028 hours"),
        ({"timeout": "30m", "recoveryTimeout": "0s"}, "for ever"),
    ],
)
def test_slices_that_are_kept_by_a_job_without_its_pods_are_a_finding(
    fleet: FakeCloud, waiting: dict[str, str], time: str
) -> None:
    with_waiting(fleet, **waiting)
    (finding,) = findings(fleet.cloud)
    assert f"a running job that loses a pod keeps its slices {time}" in finding


@pytest.mark.parametrize(
    "waiting",
    [
        {"timeout": "30m"},
        {"timeout": "168h", "recoveryTimeout": "2h"},
        {"timeout": "168h", "recoveryTimeout": "1.5h30m"},
    ],
)
def test_slices_that_are_soon_given_back_are_none(fleet: FakeCloud, waiting: dict[str, str]) -> None:
    with_waiting(fleet, **waiting)
    assert findings(fleet.cloud) == []
