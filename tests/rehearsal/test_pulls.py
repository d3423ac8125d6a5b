"""Nodes stream the images of the registry only where their account may use the project's services."""

from __future__ import annotations

from typing import Any

from rehearsal.kubernetes.pulls import refused
from tests.rehearsal.fake import FakeCloud

CLUSTER = "projects/my-project/locations/us-east5/clusters/tpu-cluster"
IMAGE = "us-east5-docker.pkg.dev/my-project/tpu-images/hello-tpu"
MEMBER = "google_project_iam_member"


def job(*images: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image} for image in images]}}}}


def without_the_role(fake: FakeCloud) -> None:
    (granted,) = fake.cloud.find(MEMBER, prefix="my-project/roles/serviceusage.serviceUsageConsumer/")
    assert fake.cloud.delete(granted.kind, granted.name)


def test_the_nodes_of_the_product_pull_what_is_in_the_registry(deployed: FakeCloud) -> None:
    assert refused(deployed.cloud, CLUSTER, job(IMAGE)) == ()


def test_with_the_role_of_nodes_alone_no_pod_starts(deployed: FakeCloud) -> None:
    without_the_role(deployed)
    assert deployed.cloud.find(MEMBER), "the nodes' own role is still there"
    lines = refused(deployed.cloud, CLUSTER, job(IMAGE, IMAGE, "busybox"))
    assert [line.split()[4] for line in lines] == ["cpu", "tpu-0", "tpu-1"]
    for line in lines:
        assert line.endswith(
            f"do not start: tpu-nodes@my-project.iam.gserviceaccount.com cannot stream {IMAGE}: Permission "
            "'serviceusage.services.use' denied on resource 'projects/my-project' (or it may not exist)."
        )


def test_what_is_not_streamed_is_pulled_all_the_same(deployed: FakeCloud) -> None:
    without_the_role(deployed)
    assert refused(deployed.cloud, CLUSTER, job("busybox", "registry.k8s.io/kueue/kueue:v0.19.2")) == ()
    for name in ("cpu", "tpu-0", "tpu-1"):
        deployed.cloud.change(
            "google_container_node_pool",
            f"{CLUSTER}/nodePools/{name}",
            lambda pool: pool["node_config"][0].update(gcfs_config=[{"enabled": False}]),
        )
    assert refused(deployed.cloud, CLUSTER, job(IMAGE)) == ()
