"""A plan that waited longer than its token lives, applied by the real Terraform."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehearsal.google.permissions import let_an_hour_pass
from tests.loading import load_text
from tests.rehearsal.ground import Ground, ground_of
from tpuenv.terraform.errors import explain

pytestmark = pytest.mark.slow

PLAN = "waiting.plan"


def wait_with_a_plan(ground: Ground) -> None:
    ground.deploy(("foundation", "cluster"))
    ground.terraform("platform", "init", "-reconfigure")
    ground.terraform("platform", "plan", f"-out={PLAN}")
    let_an_hour_pass(ground.world.cloud)


def test_its_apply_is_refused_and_explained_and_the_next_run_goes_on(tmp_path: Path) -> None:
    text = "PROJECT_ID=my-project\n"
    with ground_of(load_text(text), text, tmp_path) as ground:
        wait_with_a_plan(ground)
        said = ground.terraform("platform", "apply", PLAN, code=1)
        assert explain(said).startswith("Expired: the cluster no longer accepts the token")
        ground.apply("platform")


def test_with_the_auth_plugin_it_is_applied(tmp_path: Path) -> None:
    text = "PROJECT_ID=my-project\nGKE_AUTH_PLUGIN=true\n"
    with ground_of(load_text(text), text, tmp_path) as ground:
        wait_with_a_plan(ground)
        ground.terraform("platform", "apply", PLAN)
