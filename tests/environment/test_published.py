"""Regions, zones and GKE versions that Google does not publish are reported apart from certain mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from environment import locations, tpu_catalogue
from environment.settings.values import region_of
from tests.fleets import one_group, with_fleet
from tests.loading import loaded

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    ("keys", "lines"),
    [
        ({}, []),
        (
            {"REGION": "us-esat5", "ZONE": "us-esat5-b"},
            ["REGION: 'us-esat5' is not among Google's regions of September 2026; did you mean 'us-east5'?"],
        ),
        (
            {"ZONE": "us-east5-x"},
            ["ZONE: 'us-east5-x' is not among Google's zones of September 2026; us-east5 has us-"],
        ),
        ({"CPU_ZONE": "us-east5-x"}, ["CPU_ZONE: 'us-east5-x' is not among Google's zones"]),
        ({"TENSORBOARD_REGION": "us-central9"}, ["TENSORBOARD_REGION: 'us-central9' is not among Google's regions"]),
        (
            {"GKE_VERSION": "1.99"},
            ["GKE_VERSION: '1.99' is newer than 1.37, the newest that GKE had in September 2026"],
        ),
        ({"GKE_VERSION": "1.33.4"}, ["GKE_VERSION: '1.33.4' is older than 1.34, the oldest that GKE had on REGULAR"]),
        ({"GKE_VERSION": "1.33.4", "RELEASE_CHANNEL": "EXTENDED"}, []),
        ({"GKE_VERSION": "1.37", "RELEASE_CHANNEL": "STABLE"}, []),
        ({"REGION": "us-central1", "ZONE": "us-central1-ai1a"}, []),
        (
            {"REGION": "us-central1", "ZONE": "us-central1-ai2b"},
            ["ZONE: 'us-central1-ai2b' is not among Google's zones of September 2026; us-central1 has us-central1-a, "],
        ),
    ],
)
def test_what_google_does_not_publish_is_named_with_what_is_near(keys: dict[str, str], lines: list[str]) -> None:
    environment = loaded(**keys)
    unlisted = environment.unlisted
    assert set(unlisted) <= set(environment.warnings)
    assert len(unlisted) == len(lines)
    assert all(problem.startswith(line) for problem, line in zip(unlisted, lines, strict=True)), unlisted


def test_a_zone_of_a_pool_group_is_named_with_its_line() -> None:
    (line,) = with_fleet(one_group("type: v6e-16, slices: 1, zone: us-east5-x")).unlisted
    assert line.startswith("fleet.yaml:2: tpu_pools.dev.zone: 'us-east5-x' is not among Google's zones")


def test_every_zone_with_tpus_is_published() -> None:
    zones = {zone for of_generation in tpu_catalogue.ZONES_OF_GENERATION.values() for zone in of_generation}
    known = {f"{region}-{letter}" for region, letters in locations.ZONES.items() for letter in letters}
    assert zones <= known | set(locations.AI_ZONES)
    assert {region_of(zone) for zone in locations.AI_ZONES} <= set(locations.ZONES)


def test_the_rehearsal_knows_the_same_lists() -> None:
    ours, theirs = (
        json.loads((ROOT / folder / "locations.json").read_text()) for folder in ("environment", "rehearsal/google")
    )
    assert ours == theirs
