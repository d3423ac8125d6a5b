"""The fleet.yaml that is written out for an environment describes that environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from environment import Environment, Refused, load
from environment.fleet.text import fleet_text
from environment.settings.model import KEYS_OF_THE_FLEET
from tests.environment.test_fleet_properties import SECTIONS
from tests.examples import examples
from tests.fleets import one_team, with_fleet
from tests.synthesis import CASES, HERE, synthesize, texts

WITHOUT_A_FLEET = [case for case in CASES if not (HERE / "cases" / f"{case}.fleet.yaml").exists()]
SECURITY = "gke-security-groups@example.com"
MEMBERS = {"MEMBERS": "alice@example.com group:tpu@example.com", "RBAC_SECURITY_GROUP": SECURITY}


def text_of(fleet: Environment) -> str:
    return fleet_text(
        fleet.groups,
        fleet.teams,
        fair_sharing=fleet.fair_sharing,
        zone=fleet.settings.zone,
        host_access=fleet.settings.xpk_compatibility,
    )


@pytest.mark.parametrize("members", [{}, MEMBERS], ids=["", "members"])
@pytest.mark.parametrize("case", WITHOUT_A_FLEET)
def test_moving_on_to_a_fleet_file_changes_nothing(case: str, members: dict[str, str], tmp_path: Path) -> None:
    vars_env = HERE / "cases" / f"{case}.env"
    before = load(vars_env, members)
    (tmp_path / "fleet.yaml").write_text(text_of(before), encoding="utf-8")
    keys = [line for line in vars_env.read_text().splitlines() if line.partition("=")[0] not in KEYS_OF_THE_FLEET]
    (tmp_path / "vars.env").write_text("\n".join([*keys, *(f"{key}=" for key in KEYS_OF_THE_FLEET)]))
    after = load(tmp_path / "vars.env", {**members, "MEMBERS": ""}, tmp_path / "fleet.yaml")
    assert after == before
    if case == "default" and not members:
        first, second = synthesize(before, tmp_path / "before"), synthesize(after, tmp_path / "after")
        assert texts(first) == texts(second)


@pytest.mark.parametrize("case", [case for case in CASES if case not in WITHOUT_A_FLEET])
def test_a_fleet_file_written_out_again_says_the_same(case: str) -> None:
    fleet = load(HERE / "cases" / f"{case}.env", {}, HERE / "cases" / f"{case}.fleet.yaml")
    assert with_settings_of(fleet, text_of(fleet)) == (fleet.groups, fleet.teams, fleet.fair_sharing)


def test_a_team_that_xpk_compatibility_gives_no_access_has_none_in_the_text() -> None:
    fleet = with_fleet(
        "tpu_pools: {a: {type: v6e-16, slices: 1}}\nteams: {x: {host_access: false}, y: {}}\n", XPK_COMPATIBILITY="true"
    )
    text = text_of(fleet)
    assert text.count("host_access: ") == text.count("host_access: false") == 1


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(SECTIONS)
def test_every_fleet_reads_the_same_after_it_was_written(
    sections: tuple[list[tuple[str, str]], list[tuple[str, str]]],
) -> None:
    pools, teams = ("".join(f"  {name}: {value}\n" for name, value in section) for section in sections)
    try:
        fleet = with_fleet(f"tpu_pools:\n{pools}teams:\n{teams}")
    except Refused:
        return
    assert with_settings_of(fleet, text_of(fleet)) == (fleet.groups, fleet.teams, fleet.fair_sharing)


def test_a_name_that_yaml_takes_for_something_else_is_quoted() -> None:
    fleet = with_fleet(one_team("pools: ['null', dev]").replace("big:", "'null':").replace("others:", "'on':"))
    text = text_of(fleet)
    assert '"null"' in text and '"on"' in text
    assert with_settings_of(fleet, text)[1] == fleet.teams


def with_settings_of(fleet: Environment, text: str) -> tuple[object, ...]:
    read_again = with_fleet(
        text,
        REGION=fleet.settings.region,
        ZONE=fleet.settings.zone,
        RBAC_SECURITY_GROUP=fleet.settings.rbac_security_group,
    )
    return read_again.groups, read_again.teams, read_again.fair_sharing
