"""host_access of teams: who has it, and what is said of it."""

from __future__ import annotations

import pytest

from tests.fleets import refused_fleet, with_fleet
from tests.loading import loaded

POOLS = "tpu_pools: {a: {type: v6e-16, slices: 2}, b: {type: v6e-16, slices: 2}}\n"


def test_a_team_has_it_if_it_says_so_or_where_xpk_needs_it() -> None:
    teams = POOLS + "teams: {x: {pools: [a], host_access: true}, y: {pools: [b]}}\n"
    assert [team.host_access for team in with_fleet(teams).teams] == [True, False]
    assert [team.host_access for team in with_fleet(teams, XPK_COMPATIBILITY="true").teams] == [True, True]
    kept_out = POOLS + "teams: {x: {pools: [a], host_access: true}, y: {pools: [b], host_access: false}}\n"
    assert [team.host_access for team in with_fleet(kept_out, XPK_COMPATIBILITY="true").teams] == [True, False]
    assert [loaded(XPK_COMPATIBILITY=value).teams[0].host_access for value in ("true", "false")] == [True, False]


def test_hosts_that_it_shares_with_a_team_without_are_a_warning() -> None:
    (warning,) = with_fleet(POOLS + "teams: {x: {host_access: true}, y: {pools: [b]}}\n").warnings
    assert "pods of x may be root on hosts of b, which y may use after them; give teams pool groups" in warning
    (first, second) = with_fleet(POOLS + "teams: {x: {host_access: true}, y: {host_access: true}}\n").warnings
    assert "pods of x may be root on hosts of a, b, which y may use" in first
    assert "pods of y may be root on hosts of a, b, which x may use" in second
    assert with_fleet(POOLS + "teams: {x: {pools: [a], host_access: true}, y: {pools: [b]}}\n").warnings == ()


def test_an_autopilot_cluster_cannot_give_it() -> None:
    fleet = "tpu_pools: {a: {type: v6e-16, slices: 2}}\nteams: {x: {host_access: true}}\n"
    (problem,) = refused_fleet(fleet, CLUSTER_MODE="autopilot")
    assert "host_access" in problem and "GKE refuses privileged pods" in problem


@pytest.mark.parametrize("value", ["maybe", "1", "[true]"])
def test_it_is_true_or_false(value: str) -> None:
    (problem,) = refused_fleet(POOLS + f"teams: {{x: {{host_access: {value}}}}}\n")
    assert "host_access" in problem
