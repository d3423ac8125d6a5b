"""TPU VMs with the real Terraform and the provider that only they have: changed, and after a lost state."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rehearsal.ground import ground_of, same, synthesize
from tests.synthesis import HERE, Synthesis

CASE = "tpu-vms"
STACKS = ("foundation", CASE)


@pytest.mark.slow
def test_tpu_vms_are_made_changed_and_found_again(synthesis: Synthesis, tmp_path: Path) -> None:
    settings, fleet = (
        (HERE / "cases" / f"{CASE}.{name}").read_text(encoding="utf-8") for name in ("env", "fleet.yaml")
    )
    (tmp_path / "fleet.yaml").write_text(fleet, encoding="utf-8")
    with ground_of(synthesis.environment(CASE), settings, tmp_path) as ground:
        ground.deploy(STACKS)
        ground.unchanged(STACKS)
        (tmp_path / "fleet.yaml").write_text(
            fleet.replace("type: v6e-16, team", "type: v6e-32, team"), encoding="utf-8"
        )
        synthesize(ground.world)
        assert "1 added, 0 changed, 1 destroyed" in ground.apply(CASE)
        ground.unchanged(STACKS)
        before = ground.things
        ground.forget(CASE)
        assert "imported google_tpu_v2_vm.vm-lab" in ground.recover(CASE, "--yes")
        ground.apply(CASE)
        same(ground.things, before)
        ground.unchanged(STACKS)
