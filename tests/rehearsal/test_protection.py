"""Changes that would replace what everything stands on: the real Terraform refuses them before it touches anything."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

import environment
from rehearsal.inventory import remains
from rehearsal.world import World
from tests.rehearsal.deployed import world_of
from tests.rehearsal.fake import ROOT
from tpuenv.rehearsals import cdktf_in_world

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH"),
]

OTHER_SUBNET = {"SUBNET_CIDR": "10.32.0.0/20"}
OTHER_CONTROL_PLANE = {"CONTROL_PLANE_CIDR": "172.16.0.0/28"}
UNPROTECTED = {"DELETION_PROTECTION": "false"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The default environment, deployed and protected."""
    configured = environment.load(ROOT / "tests" / "cases" / "default.env", {})
    folder = tmp_path_factory.mktemp("protection") / "world"
    with world_of(configured, folder, PROJECT_ID=configured.settings.project_id) as world:
        assert cdktf_in_world.run(world, "deploy").code == 0
        yield world


def protected(run: cdktf_in_world.Run) -> list[str]:
    """The stacks that Terraform refused for their protection, and what else stopped one."""
    return [
        stack.name if "lifecycle.prevent_destroy" in " ".join(error.split()) else f"{stack.name}: {error}"
        for stack in run.stacks
        for error in stack.errors
    ]


def plan(world: World, stack: str, **settings: str) -> str:
    """What Terraform would do to a stack under other settings."""
    done = ""
    for command in (
        [sys.executable, str(ROOT / "main.py")],
        [str(world.terraform), f"-chdir={world.output / 'stacks' / stack}", "plan", "-no-color"],
    ):
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=world.environment(CDKTF_OUTDIR=str(world.output), **settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        ).stdout
    return done


def test_another_range_of_the_subnet_is_refused_before_anything_is_touched(world: World) -> None:
    before = world.cloud.snapshot()
    run = cdktf_in_world.run(world, "deploy", settings=OTHER_SUBNET)
    assert run.code != 0
    assert protected(run) == ["foundation"]
    assert "google_compute_subnetwork.subnet" in run.errors[0]
    assert world.cloud.snapshot() == before


def test_a_cluster_that_a_setting_would_replace_is_refused_as_protected(world: World) -> None:
    """The setting is in a list of blocks, and its address has to name the place in it."""
    run = cdktf_in_world.run(world, "deploy", settings=OTHER_CONTROL_PLANE)
    assert run.code != 0
    assert protected(run) == ["cluster"]


def test_without_protection_it_is_replaced(world: World) -> None:
    said = plan(world, "cluster", **OTHER_CONTROL_PLANE, **UNPROTECTED)
    assert "google_container_cluster.cluster must be replaced" in said
    assert '+ master_ipv4_cidr_block = "172.16.0.0/28" # forces replacement' in " ".join(said.split())


def test_lifting_protection_lets_all_of_it_go(world: World) -> None:
    run = cdktf_in_world.run(world, "destroy", settings=UNPROTECTED | {"DESTROY_DATA": "true"})
    assert run.code == 0, run.errors
    assert remains(world.cloud, world.project.state_bucket) == []
