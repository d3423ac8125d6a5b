"""Cloud Monitoring: dashboards, alert policies and whom they notify.

https://cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.notificationChannels/delete
"""

from __future__ import annotations

import json

from rehearsal.cloud import Attributes
from rehearsal.google.errors import bad_request, not_found, require
from rehearsal.google.resource import Change, GoogleResource

CHANNEL, POLICY = "google_monitoring_notification_channel", "google_monitoring_alert_policy"

_MOST_COLUMNS = 48  # https://cloud.google.com/monitoring/api/ref_v3/rest/v1/projects.dashboards#MosaicLayout


def its_name(change: Change) -> Attributes:
    return {"name": change.name}


def channels_exist(change: Change) -> None:
    for channel in change.values["notification_channels"] or []:
        require(not channel or change.get(CHANNEL, channel), f"Channel {channel} was not found", not_found)


def no_policy_notifies_it(change: Change) -> None:
    """Without `force`, a channel that a policy names is not deleted."""
    for policy in change.client.cloud.find(POLICY):
        named = policy.attributes["notification_channels"] or []
        require(change.name not in named, f"Channel {change.name} is still used by the alert policy {policy.name}")


def tiles_are_in_the_grid(change: Change) -> None:
    layout = json.loads(change.values["dashboard_json"])["mosaicLayout"]
    require(layout["columns"] <= _MOST_COLUMNS, f"mosaicLayout.columns must be from 1 to {_MOST_COLUMNS}", bad_request)
    for tile in layout["tiles"]:
        fits = tile.get("xPos", 0) + tile["width"] <= layout["columns"]
        require(fits, f"the tile '{tile['widget']['title']}' is not within the columns of the layout", bad_request)


RESOURCE_TYPES = (
    GoogleResource(type_=CHANNEL, removal=(no_policy_notifies_it,), computed=its_name),
    GoogleResource(type_=POLICY, checks=(channels_exist,), computed=its_name),
    GoogleResource(type_="google_monitoring_dashboard", checks=(tiles_are_in_the_grid,)),
)
