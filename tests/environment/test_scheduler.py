"""The nightly job is in a region that has Cloud Scheduler, near the builds."""

from __future__ import annotations

import pytest

from environment.locations import SCHEDULER_REGIONS, scheduler_region
from environment.tpu_catalogue import ZONES_OF_GENERATION


@pytest.mark.parametrize(
    ("region", "near"),
    [
        ("us-central1", "us-central1"),
        ("europe-west4", "europe-west4"),
        ("us-east5", "us-east4"),
        ("us-south1", "us-central1"),
        ("europe-north1", "europe-west1"),
        ("southamerica-west1", "southamerica-east1"),
        ("australia-southeast2", "australia-southeast1"),
        ("africa-south1", "europe-west1"),
        ("moon-north1", "us-central1"),
    ],
)
def test_a_job_is_where_the_builds_are_or_near(region: str, near: str) -> None:
    assert scheduler_region(region) == near
    assert near in SCHEDULER_REGIONS


def test_every_region_with_tpus_gets_one_that_has_cloud_scheduler_on_its_continent() -> None:
    for zone in {zone for zones in ZONES_OF_GENERATION.values() for zone in zones}:
        region = "-".join(zone.split("-")[:2])
        nearest = scheduler_region(region)
        assert nearest in SCHEDULER_REGIONS
        assert nearest.split("-")[0] == region.split("-")[0]
