"""What the rehearsal notices of queues and jobs beside what Kueue says."""

from __future__ import annotations

from rehearsal.jobs import quotas_off
from rehearsal.kubernetes.nodes import POOL
from tests.rehearsal.fake import FakeCloud

CLUSTER = "projects/my-project/locations/us-east5/clusters/tpu-cluster"


def test_quotas_are_the_chips_that_exist(deployed: FakeCloud) -> None:
    assert quotas_off(deployed.cloud, CLUSTER) == []


def test_a_quota_without_its_chips_is_noticed(deployed: FakeCloud) -> None:
    assert deployed.cloud.delete(POOL, f"{CLUSTER}/nodePools/tpu-1")
    assert quotas_off(deployed.cloud, CLUSTER) == ["flavor tpu: the quotas are 32 chips, the nodes have 16"]


def test_nodes_that_no_flavor_selects_are_noticed(deployed: FakeCloud) -> None:
    def other(pool: dict[str, object]) -> None:
        pool["node_config"][0]["labels"] = {"tpuenv/pool-group": "other"}  # type: ignore[index]

    deployed.cloud.change(POOL, f"{CLUSTER}/nodePools/tpu-0", other)
    assert quotas_off(deployed.cloud, CLUSTER) == ["flavor tpu: the quotas are 32 chips, the nodes have 16"]
