"""What the rehearsal notices of queues and jobs beside what Kueue says."""

from __future__ import annotations

from rehearsal.jobs import end, quotas_off
from rehearsal.kubernetes.nodes import POOL
from tests.rehearsal.deployed import api_of, world_of
from tests.rehearsal.fake import FakeCloud
from tests.rehearsal.job_sets import job_set
from tests.rehearsal.ray_jobs import ray
from tests.synthesis import Synthesis

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


def test_slices_of_a_ray_cluster_whose_name_begins_like_that_of_an_ended_job_are_not_those_of_the_job(
    deployed: FakeCloud, synthesis: Synthesis
) -> None:
    job = job_set("train")
    api = api_of(deployed)
    api.create(job)
    api.create(ray("ray-cluster", "train-cluster"))
    world = world_of(synthesis.environment("default"), deployed.folder)
    assert end(world, CLUSTER, [job]) == 0
