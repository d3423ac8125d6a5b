"""Changes that would replace what everything stands on: the real Terraform refuses them before it touches anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from rehearsal.inventory import remains
from tests.loading import loaded
from tests.rehearsal.ground import Ground, ground_of, synthesize

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH"),
]

OTHER_SUBNET = {"SUBNET_CIDR": "10.32.0.0/20"}
OTHER_CONTROL_PLANE = {"CONTROL_PLANE_CIDR": "172.16.0.0/28"}
UNPROTECTED = {"DELETION_PROTECTION": "false"}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """The default environment, deployed and protected."""
    with ground_of(loaded(), "PROJECT_ID=my-project\n", tmp_path_factory.mktemp("protection")) as ground:
        ground.deploy()
        yield ground


def protected(said: str) -> bool:
    return "lifecycle.prevent_destroy" in " ".join(said.split())


def test_another_range_of_the_subnet_is_refused_before_anything_is_touched(ground: Ground) -> None:
    before = ground.world.cloud.snapshot()
    synthesize(ground.world, **OTHER_SUBNET)
    said = ground.apply("foundation", code=1)
    assert protected(said)
    assert "google_compute_subnetwork.subnet" in said
    assert ground.world.cloud.snapshot() == before


def test_a_cluster_that_a_setting_would_replace_is_refused_as_protected(ground: Ground) -> None:
    """The setting is in a list of blocks, and its address has to name the place in it."""
    synthesize(ground.world, **OTHER_CONTROL_PLANE)
    assert protected(ground.terraform("cluster", "plan", code=1))


def test_without_protection_it_is_replaced(ground: Ground) -> None:
    synthesize(ground.world, **OTHER_CONTROL_PLANE, **UNPROTECTED)
    said = ground.terraform("cluster", "plan")
    assert "google_container_cluster.cluster must be replaced" in said
    assert '+ master_ipv4_cidr_block = "172.16.0.0/28" # forces replacement' in " ".join(said.split())


def test_lifting_protection_lets_all_of_it_go(ground: Ground) -> None:
    synthesize(ground.world, **UNPROTECTED, DESTROY_DATA="true")
    for stack in reversed(ground.stacks):
        ground.terraform(stack, "destroy", "-auto-approve")
    assert remains(ground.world.cloud, ground.world.project.state_bucket) == []
