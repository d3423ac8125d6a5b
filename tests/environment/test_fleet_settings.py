"""fleet.yaml beside vars.env: what the two contradict, and fleets that cannot be or may not come to be."""

from __future__ import annotations

from pathlib import Path

import pytest

import environment
from environment import Environment, Refused
from tests.fleets import one_group, one_team, refused_fleet, with_fleet
from tests.loading import refused_text

ROOT = Path(__file__).parent.parent.parent
CASES = ROOT / "tests" / "cases"
SECURITY = "gke-security-groups@example.com"


def case(name: str) -> Environment:
    return environment.load(CASES / f"{name}.env", {}, CASES / f"{name}.fleet.yaml")


def test_mistakes_in_both_files_are_reported_at_once() -> None:
    text = "tpu_pools: {dev: {type: v6e-17, slices: 0}}\nteams: {a: {share: 0}}"
    problems = refused_fleet(text, REGION="x", CPU_MIN_NODES="9")
    assert [problem.split(": ")[0] for problem in problems] == [
        "REGION",
        *["fleet.yaml:1"] * 2,
        "fleet.yaml:2",
        "CPU_MIN_NODES",
    ]


def test_mistakes_in_the_fleet_are_reported_beside_a_vars_env_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("a")
    with pytest.raises(Refused) as error:
        environment.load(tmp_path / "vars.env", {}, tmp_path / "fleet.yaml")
    assert [problem.split(": ")[0] for problem in error.value.problems] == ["vars.env", "fleet.yaml:1"]


@pytest.mark.published
def test_the_repository_s_vars_env_says_what_to_empty_beside_a_fleet_file(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(one_group("type: v6e-16, slices: 1"))
    with pytest.raises(Refused) as error:
        environment.load(ROOT / "vars.env", {}, tmp_path / "fleet.yaml")
    assert error.value.problems == tuple(
        f"{key}: '{value}' is not used, because fleet.yaml says which TPUs and teams there are; leave it empty in "
        f"vars.env ({key}=), or remove fleet.yaml"
        for key, value in (("TPU_TYPE", "v6e-16"), ("NUM_TPU_POOLS", "2"), ("NAMESPACE", "tpu-training"))
    )


@pytest.mark.parametrize("name", ["fleet.yml", "Fleet.yaml", "FLEET.YML"])
def test_a_fleet_file_of_another_name_is_refused_and_not_passed_over(name: str, tmp_path: Path) -> None:
    (tmp_path / "vars.env").write_text("PROJECT_ID=my-project\n")
    (tmp_path / name).write_text(one_group("type: v6e-16, slices: 1"))
    with pytest.raises(Refused) as error:
        environment.load(tmp_path / "vars.env", {}, tmp_path / "fleet.yaml")
    assert error.value.problems == (
        f"{name}: nothing reads a file of this name; rename it to fleet.yaml, or remove it",
    )


def test_a_variable_that_the_fleet_file_replaces_is_to_be_unset() -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1"), {"TPU_TYPE": "v6e-17", "NAMESPACE": ""})
    assert problem.startswith(
        "TPU_TYPE: 'v6e-17' is not used, because fleet.yaml says which TPUs and teams there are; "
    )
    assert "; unset TPU_TYPE in your shell, or remove fleet.yaml" in problem


def test_members_beside_a_fleet_file_belong_into_it() -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1"), MEMBERS="alice@example.com")
    assert problem.startswith("MEMBERS: 'alice@example.com' is not used, because fleet.yaml says which TPUs and teams")


def test_empty_keys_are_no_contradiction() -> None:
    assert with_fleet(one_group("type: v6e-16, slices: 1"), TPU_TYPE="", NUM_TPU_POOLS="", NAMESPACE="", MEMBERS="")


def test_groups_are_members_where_gke_may_know_them() -> None:
    assert with_fleet(one_team("members: ['group:a@b.com']"), RBAC_SECURITY_GROUP=SECURITY)


@pytest.mark.parametrize(
    "group", ["gke-security-groups@", "groups@example.com", "gke-security-groups@Example.com", "x"]
)
def test_another_security_group_is_refused(group: str) -> None:
    (problem,) = refused_text(f"PROJECT_ID=my-project\nRBAC_SECURITY_GROUP={group}\n")
    assert problem.startswith(f"RBAC_SECURITY_GROUP: '{group}' is not the group that GKE uses")


def test_ranges_must_hold_the_whole_fleet_with_every_autoscaled_group_at_its_largest() -> None:
    # 8 + 64 hosts x 32 addresses are 9 blocks of 256; 4 + 1 CPU and 2 + 1 system nodes take 8 more: 17, so a /19
    text = one_group("type: v6e-16, slices: 2}\n  big: {type: v6e-256, slices: 1, capacity: flex-start")
    assert with_fleet(text, PODS_CIDR="10.4.0.0/19")
    (problem,) = refused_fleet(text, PODS_CIDR="10.4.0.0/20")
    assert problem.startswith("PODS_CIDR: 10.4.0.0/20 holds 128 nodes of 16 pods, this fleet needs 136 (72 TPU nodes")


def test_a_fleet_larger_than_a_cluster_is_refused_at_tpu_pools() -> None:
    problems = refused_fleet(one_group("type: v6e-256, slices: 1100"))
    assert any(
        problem.startswith("fleet.yaml:1: tpu_pools: '1100' slices make a cluster of 70406 nodes; GKE takes 65000")
        for problem in problems
    )


def test_more_groups_than_kueue_takes_in_a_queue_are_refused_for_the_teams_that_have_them() -> None:
    groups = "".join(f"  g{i}: {{type: v6e-1, slices: 1}}\n" for i in range(64))
    problems = refused_fleet(f"tpu_pools:\n{groups}teams:\n  all:\n  one: {{pools: [g0]}}\n")
    assert problems == (
        "fleet.yaml:67: teams.all: may use 64 pool groups; Kueue takes 63 in a queue, so name fewer in its pools",
    )
    most = ", ".join(f"g{i}" for i in range(1, 64))
    assert with_fleet(f"tpu_pools:\n{groups}teams:\n  most: {{pools: [{most}]}}\n  one: {{pools: [g0]}}\n")


def test_a_group_that_no_team_may_use_is_refused() -> None:
    (problem,) = refused_fleet(one_team("pools: [dev]").replace("others:", "others: {pools: [dev]}"))
    assert problem.startswith("fleet.yaml:3: tpu_pools.big: is in the pools of no team, so nobody could use it")


@pytest.mark.parametrize(
    ("small", "large"), [("borrowing: no", ""), ("", "lending: no"), ("borrowing: 0", "lending: 1"), ("", "lending: 0")]
)
def test_a_team_that_could_never_have_a_slice_is_refused(small: str, large: str) -> None:
    text = one_group("type: v6e-16, slices: 2").replace(
        "research:", f"small: {{{small}}}\n  large: {{share: 99, {large}}}"
    )
    (problem,) = refused_fleet(text)
    assert problem.startswith("fleet.yaml:4: teams.small: owns no slice by its share and can borrow none, so no job")


def test_teams_that_can_only_borrow_are_a_warning() -> None:
    (warning,) = case("twelve-teams-two-slices").warnings
    assert warning.startswith(
        "twelve-teams-two-slices.fleet.yaml:3: teams: by their shares biology, chemistry, economics and 7 more own no "
        "whole slice: their jobs start only on what other teams leave idle"
    )
    assert case("one-team").warnings == ()


def test_a_zone_where_google_lists_none_of_a_group_s_tpus_is_a_warning_at_its_line() -> None:
    stated, unstated = "type: v5p-128, slices: 1, zone: us-east5-c", "type: v5p-128, slices: 1"
    (warning,) = with_fleet(one_group(stated)).warnings
    assert warning.startswith(
        "fleet.yaml:2: tpu_pools.dev.zone: Google's list of November 2026 has no v5p in 'us-east5-c'"
    )
    (warning,) = with_fleet(one_group(unstated)).warnings
    assert warning.startswith(
        "fleet.yaml:2: tpu_pools.dev.type: Google's list of November 2026 has no v5p in 'us-east5-b'"
    )


def test_a_zone_of_the_settings_outside_the_region_is_one_mistake() -> None:
    (problem,) = refused_fleet(one_group("type: v6e-16, slices: 1"), ZONE="us-east1-d")
    assert problem.startswith("ZONE: 'us-east1-d' is not in REGION 'us-east5'")
