"""The pipeline's identities with the real Terraform: its state, its lock, its plans."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from rehearsal.world import World
from tests.rehearsal.deployed import world_of
from tests.synthesis import Synthesis, stacks_of, synthesize

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH"),
]

CASE = "pipeline"
PLAN, DEPLOY = (f"tpu-{name}@my-project.iam.gserviceaccount.com" for name in ("plan", "deploy"))
OF_A_PERSON = ("foundation", "pipeline")
OF_BUILDS = [stack for stack in stacks_of(CASE) if stack != "pipeline"]


@pytest.fixture(scope="module")
def world(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A person has deployed foundation and pipeline; everything is synthesized."""
    configured = synthesis.environment(CASE)
    with world_of(configured, tmp_path_factory.mktemp("identities") / "world") as world:
        synthesize(configured, world.output)
        for stack in stacks_of(CASE):
            terraform(world, stack, "init")
        for stack in OF_A_PERSON:
            terraform(world, stack, "apply", "-auto-approve")
        yield world


def terraform(world: World, stack: str, *arguments: str, account: str = "", code: int = 0) -> str:
    done = subprocess.run(
        [str(world.terraform), *arguments, "-no-color", "-input=false"],
        cwd=world.output / "stacks" / stack,
        env=world.environment(**(world.as_account(account) if account else {})),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    return " ".join(done.stdout.split())  # Terraform breaks its lines


def test_builds_deploy_plan_and_destroy_with_what_they_may(world: World) -> None:
    for stack in OF_BUILDS:
        terraform(world, stack, "apply", "-auto-approve", account=DEPLOY)
    pools = len(world.cloud.find("google_container_node_pool"))
    for stack in OF_BUILDS:
        terraform(world, stack, "plan", "-detailed-exitcode", "-lock=false", account=PLAN)

    refused = terraform(world, "cluster", "plan", account=PLAN, code=1)
    assert "Error acquiring the state lock" in refused and "does not have storage.objects.create" in refused
    refused = terraform(world, "pipeline", "plan", "-lock=false", account=PLAN, code=1)
    assert "does not have storage.objects.get" in refused
    replaced = ("-auto-approve", "-lock=false", "-replace=google_container_node_pool.tpu-0")
    refused = terraform(world, "tpu-node-pools", "apply", *replaced, account=PLAN, code=1)
    assert "'container.clusters.update' denied on resource" in refused
    assert len(world.cloud.find("google_container_node_pool")) == pools
