"""Rules of Cloud Monitoring: each is broken once with the product's own configuration, changed in one place."""

from __future__ import annotations

import json

import pytest

from rehearsal.terraform.resource_type import Refusal
from tests.rehearsal.fake import FakeCloud

CHANNEL = "google_monitoring_notification_channel.email_oncallexamplecom_C1B135AF"
POLICIES = [
    f"google_monitoring_alert_policy.alert-{name}"
    for name in (
        *("slice-partly-ready", "ray-partly-ready", "chips-without-pods", "pending-while-quota-is-free"),
        *("jobset-restarts", "nat-ports"),
    )
]
DASHBOARD = "google_monitoring_dashboard.dashboard-TPUs"


def test_a_channel_stays_as_long_as_a_policy_names_it(fleet: FakeCloud) -> None:
    with pytest.raises(Refusal, match=r"Error deleting NotificationChannel: .* is still used by the alert policy"):
        fleet.destroy(CHANNEL)
    for policy in POLICIES:
        fleet.change(policy, notification_channels=[])
    fleet.destroy(CHANNEL)


def test_a_channel_that_does_not_exist_is_refused(deployed: FakeCloud) -> None:
    with pytest.raises(Refusal, match=r"404: Channel projects/my-project/notificationChannels/7 was not found"):
        deployed.change(POLICIES[0], notification_channels=["projects/my-project/notificationChannels/7"])


def test_a_tile_beyond_the_columns_is_refused(deployed: FakeCloud) -> None:
    content = json.loads(deployed.resources[DASHBOARD].state["dashboard_json"])
    content["mosaicLayout"]["tiles"][1]["width"] = 40
    with pytest.raises(Refusal, match=r"400: the tile '.*' is not within the columns of the layout"):
        deployed.change(DASHBOARD, dashboard_json=json.dumps(content))
