"""The product's own default environment in the fake cloud."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rehearsal.deployed import deploy
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import Synthesis


def test_a_second_plan_of_every_resource_finds_nothing_to_do(deployed: FakeCloud) -> None:
    changed = [
        address
        for address, item in deployed.resources.items()
        if item.type_ != "terraform_data" and not deployed.unchanged(address)
    ]
    assert changed == []


IMPORTS = {
    "google_compute_network.network": "tpu-network",
    "google_compute_subnetwork.subnet": "projects/my-project/regions/us-east5/subnetworks/tpu-subnet",
    "google_compute_router_nat.nat": "my-project/us-east5/tpu-router/tpu-nat",
    "google_service_account.node-account": (
        "projects/my-project/serviceAccounts/tpu-nodes@my-project.iam.gserviceaccount.com"
    ),
    "google_project_service.service-computegoogleapiscom": "my-project/compute.googleapis.com",
    "google_project_iam_member.node-account-role": (
        "my-project roles/container.defaultNodeServiceAccount"
        " serviceAccount:tpu-nodes@my-project.iam.gserviceaccount.com"
    ),
    "google_storage_bucket.bucket-tpu-training": "my-project-tpu-tpu-training",
    "google_container_cluster.cluster": "projects/my-project/locations/us-east5/clusters/tpu-cluster",
    "google_container_node_pool.tpu-0": "my-project/us-east5/tpu-cluster/tpu-0",
    "helm_release.kueue": "kueue-system/kueue",
    "kubernetes_namespace_v1.team-tpu-training_namespace_139BA39A": "tpu-training",
    "kubernetes_service_account_v1.team-tpu-training_account_FC8C4C00": "tpu-training/tpu-training",
    "kubernetes_manifest.resourceflavor-tpu": "apiVersion=kueue.x-k8s.io/v1beta2,kind=ResourceFlavor,name=tpu",
}


@pytest.mark.parametrize("address", IMPORTS)
def test_what_was_deployed_can_be_imported(deployed: FakeCloud, address: str) -> None:
    before = deployed.resources[address].state
    imported = deployed.imported(address, IMPORTS[address])
    assert before is not None
    assert imported is not None
    identity = ("name", "project", "cluster", "account_id", "service", "role", "member", "namespace", "object")
    for name in identity:
        if name in before and before[name] is not None:
            assert imported[name] == before[name]


def test_every_api_is_enabled_before_it_is_used(synthesis: Synthesis, tmp_path: Path) -> None:
    """In a project where no more is on than the state bucket needs, each resource waits for its own API."""
    services = ("serviceusage.googleapis.com", "storage.googleapis.com")
    deploy(synthesis.folder("default"), tmp_path / "w", services=services).close()
