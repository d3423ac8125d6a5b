"""A rehearsal verifies every team: its slices with `tpuenv verify`, and its buckets as the team's account."""

from __future__ import annotations

from pathlib import Path

import pytest

from manifests.images import reference
from manifests.recipes import FOLDER
from rehearsal.google.artifact_registry_api import push
from tests.rehearsal.conftest import FLEET
from tests.rehearsal.deployed import api_of, deploy, world_of
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import Synthesis
from tpuenv.rehearsals.parts import Parts
from tpuenv.rehearsals.verification import try_buckets, verify

pytestmark = pytest.mark.slow

CASES = Path(__file__).parents[1] / "cases"
GRANT = "google_storage_bucket_iam_member"
Capture = pytest.CaptureFixture[str]


def parts_of(fake: FakeCloud, synthesis: Synthesis, case: str, folder: Path) -> Parts:
    """In a world whose settings are those of the case."""
    for name, target in (("env", "vars.env"), ("fleet.yaml", "fleet.yaml")):
        if (file := CASES / f"{case}.{name}").exists():
            (folder / target).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    configured = synthesis.environment(case)
    world = world_of(configured, fake.folder, TPUENV_FOLDER=str(folder))
    world._announced = {"address": fake.place.address, "reattach": ""}
    push(fake.cloud, reference(configured, FOLDER / "hello-tpu"))
    return Parts(world, configured)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_accounts_of_all_teams_use_their_own_bucket_alone(
    fleet: FakeCloud, synthesis: Synthesis, tmp_path: Path, capsys: Capture
) -> None:
    parts = parts_of(fleet, synthesis, FLEET, tmp_path)
    try_buckets(parts)
    assert parts.problems == []
    printed = flat(capsys.readouterr().out)
    for team in ("research", "serving", "students"):
        used = "its bucket can be written, read and deleted in; 3 others refused"
        assert f"as the account of {team}: {used}" in printed


def test_a_grant_that_is_missing_and_one_too_many_are_problems(
    fleet: FakeCloud, synthesis: Synthesis, tmp_path: Path
) -> None:
    parts = parts_of(fleet, synthesis, FLEET, tmp_path)
    names = parts.environment.names
    of_research = [
        item
        for item in fleet.cloud.find(GRANT)
        if item.attributes["role"] == "roles/storage.objectUser" and "/ns/research/" in item.attributes["member"]
    ]
    (item,) = of_research
    fleet.cloud.put(GRANT, item.name, {**item.attributes, "bucket": names.bucket("students")})
    try_buckets(parts)
    own, other = parts.problems[0].split("; ", 1)
    assert own == f"research: bucket {names.bucket('research')}: write an object: refused"
    assert other == f"bucket {names.bucket('students')}: its objects can be written, and must be refused"
    assert len(parts.problems) == 1


@pytest.mark.parametrize("case", ["default", "autopilot"])
def test_each_team_gets_the_hosts_and_chips_of_a_slice(
    case: str, synthesis: Synthesis, tmp_path: Path, capsys: Capture
) -> None:
    """On Autopilot, of nodes that are made for it."""
    fake = deploy(synthesis.folder(case), tmp_path / "world")
    parts = parts_of(fake, synthesis, case, tmp_path)
    verify(parts)
    fake.close()
    assert parts.problems == []
    printed = flat(capsys.readouterr().out)
    for team in parts.environment.teams:
        for group in parts.environment.groups:
            if group.name in team.pools:
                hosts, chips = group.slice.hosts, group.slice.chips
                got = f"hosts: {hosts} (simulated), chips: {chips} (simulated)"
                assert f"{team.name} on {group.name}: {got}" in printed
    nothing = "not verified, because no program runs on simulated nodes"
    assert printed.endswith(f"{nothing}: sums and products, bandwidth, own bucket, other buckets, other Services")


def test_what_does_not_work_is_a_problem(deployed: FakeCloud, synthesis: Synthesis, tmp_path: Path) -> None:
    parts = parts_of(deployed, synthesis, "default", tmp_path)
    api = api_of(deployed)
    api.delete(api.resource("kueue.x-k8s.io/v1beta2", "LocalQueue"), "tpu-training", "default")
    verify(parts)
    (problem,) = parts.problems
    assert problem.startswith("tpu-training on tpu: start: ")
    (tmp_path / "vars.env").write_text("TPU_TYPE=v6e-17\n")
    verify(parts)
    assert parts.problems[1].startswith("tpuenv verify ended with exit code 2: ")
