"""What a person does before any build, when it goes wrong: the pipeline, old states, and what is half made."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.rehearsal.ground import STATES, Ground, ground_of, same
from tests.synthesis import HERE, Synthesis

pytestmark = pytest.mark.slow

DEPLOY = "tpu-deploy@my-project.iam.gserviceaccount.com"
NETWORK = "google_compute_network.network"


@pytest.fixture(scope="module")
def ground(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """With the foundation and the pipeline deployed."""
    text = (HERE / "cases" / "pipeline.env").read_text(encoding="utf-8")
    with ground_of(synthesis.environment("pipeline"), text, tmp_path_factory.mktemp("failures")) as ground:
        ground.deploy(("foundation", "pipeline"))
        yield ground


def test_a_lost_state_of_the_pipeline_is_made_good_by_imports(ground: Ground) -> None:
    """Triggers have ids of Google's, roles and accounts are known only when those before them are imported."""
    before = ground.things
    ground.forget("pipeline")
    said = ground.recover("pipeline", "--yes")
    assert "imported google_cloudbuild_trigger.trigger-destroy" in said
    assert "imported google_project_iam_member.identities_plan-has-plan_E11587AD" in said
    same(ground.things, before)
    ground.apply("pipeline")
    same(ground.things, before)
    ground.terraform("pipeline", "plan", "-detailed-exitcode")
    assert "Nothing is wrong." in ground.recover("pipeline", "--yes")


def test_terraform_takes_a_state_that_was_put_back_and_recover_owns_what_it_does_not_know(ground: Ground) -> None:
    before = ground.things
    whole = ground.tpuenv("state", "versions", "foundation").splitlines()[2].split()
    assert whole[-1] == "live"
    ground.terraform("foundation", "state", "rm", NETWORK)
    without = ground.tpuenv("state", "versions", "foundation").splitlines()[2].split()
    said = ground.tpuenv("state", "restore", "foundation", whole[0], "--yes")
    assert f"  + {NETWORK}\n" in said
    assert f"Restored as serial {int(without[3]) + 1}" in said
    ground.terraform("foundation", "plan", "-detailed-exitcode")
    assert f"  - {NETWORK} would be in no state" in ground.tpuenv("state", "restore", "foundation", without[0], "--yes")
    assert f"imported {NETWORK}" in ground.recover("foundation", "--yes")
    ground.terraform("foundation", "plan", "-detailed-exitcode")
    assert ground.things == before


def test_two_boards_of_one_name_are_left_to_a_person(ground: Ground) -> None:
    (board,) = ground.world.cloud.find("google_vertex_ai_tensorboard")
    second = board.name.rpartition("/")[0] + "/42"
    ground.terraform("foundation", "state", "rm", "google_vertex_ai_tensorboard.tensorboard")
    ground.world.cloud.put(board.kind, second, board.attributes)
    said = ground.recover("foundation", "--yes", code=1)
    assert f"2 objects are named 'tpu-tensorboard': {board.name}, {second}." in said
    ground.world.cloud.delete(board.kind, second)
    assert f"imported {board.kind}.tensorboard" in ground.recover("foundation", "--yes")
    ground.apply("foundation")


def test_what_is_half_made_and_protected_is_named_with_the_two_ways_out(ground: Ground) -> None:
    ground.terraform("foundation", "taint", NETWORK)
    said = ground.recover("foundation", "--yes", code=1)
    assert f"would replace {NETWORK}" in said.replace("\n", " ")
    assert f"untaint {NETWORK}" in said
    assert "DELETION_PROTECTION=false tpuenv deploy foundation" in said
    ground.terraform("foundation", "untaint", NETWORK)
    assert "Nothing is wrong." in ground.recover("foundation", "--yes")


def test_the_deploy_account_may_see_what_its_destroy_would_leave_behind(ground: Ground) -> None:
    ground.apply("cluster")
    before = ground.things
    destroy = ("destroy", "--confirm", "tpu", "--output", str(ground.world.output))
    ground.forget("cluster", "foundation")
    said = ground.tpuenv(*destroy, "--foundation", "destroy", code=1, account=DEPLOY)
    assert "In the cloud, but in no state: google_container_cluster.cluster" in said
    assert f"In the cloud, but in no state: {NETWORK}" in said
    assert "In the cloud, but in no state: google_vertex_ai_tensorboard.tensorboard" in said
    assert "not known whether" not in said
    same(ground.things, before)
    ground.recover("foundation", "cluster", "--yes")
    said = ground.tpuenv(*destroy, account=DEPLOY)
    assert said.endswith("Destroyed: observability, queues, tpu-node-pools, platform, cluster\n")
    assert len(ground.world.cloud.find("google_container_cluster")) == 0


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(ground: Ground) -> None:
    ground.apply("foundation")
    ground.world.cloud.put_blob(STATES, "tpu/cluster/default.tfstate", b'{"version": 4', {}, keep_old=True)
    said = ground.recover("--dry-run", code=1)
    assert "cluster: its state is damaged: it is not JSON" in said
    assert "cluster: not checked, because of its state" in said
    assert "platform: cannot be searched until the cluster exists (stack cluster): deploy, then recover again" in said
    assert "foundation: to do for a deploy: no changes" in said
    ground.recover("--yes")
    assert json.loads(ground.terraform("cluster", "state", "pull").strip() or "{}").get("resources", []) == []
