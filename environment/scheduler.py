"""Where Cloud Scheduler is offered. It is not in every region, and says so as a lack of permission.

https://docs.cloud.google.com/scheduler/docs/locations and the release notes up to September 2026; a region that is
missing here costs nothing, for a job may call an address anywhere.
"""

from __future__ import annotations

REGIONS = frozenset(
    {
        f"{place}{number}"
        for place, numbers in {
            "northamerica-northeast": (1, 2),
            "southamerica-east": (1,),
            "us-central": (1,),
            "us-east": (1, 4),
            "us-west": (1, 2, 3, 4),
            "europe-central": (2,),
            "europe-west": (1, 2, 3, 4, 6, 12),
            "asia-east": (1, 2),
            "asia-northeast": (1, 2, 3),
            "asia-south": (1, 2),
            "asia-southeast": (1, 2, 3),
            "australia-southeast": (1,),
            "me-central": (1, 2),
            "me-west": (1,),
        }.items()
        for number in numbers
    }
)

# By the beginning of a region's name, the longest first: one that is near and has had Cloud Scheduler for years.
_NEAR = (
    ("us-east", "us-east4"),
    ("us-west", "us-west1"),
    ("southamerica-", "southamerica-east1"),
    ("europe-", "europe-west1"),
    ("africa-", "europe-west1"),
    ("me-", "europe-west3"),
    ("asia-northeast", "asia-northeast1"),
    ("asia-south", "asia-southeast1"),
    ("asia-", "asia-east1"),
    ("australia-", "australia-southeast1"),
)


def scheduler_region(region: str) -> str:
    """The region of a job that belongs to `region`: itself, or one that is near."""
    if region in REGIONS:
        return region
    return next((near for start, near in _NEAR if region.startswith(start)), "us-central1")
