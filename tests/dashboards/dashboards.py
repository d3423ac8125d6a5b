"""What the stack `observability` draws and watches: tiles with their queries, and alerts.

Dashboards are in Google's format: https://cloud.google.com/monitoring/api/ref_v3/rest/v1/projects.dashboards
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Series of one query. `kind` is Google's plotType, `unit` Google's unit."""

    query: str
    kind: str = "LINE"
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Of a dashboard's grid, in its columns and rows. `text` is Markdown, of a tile without plots."""

    x: int
    y: int
    width: int
    height: int
    title: str
    plots: tuple[Plot, ...] = ()
    axis: str = ""
    scorecard: bool = False
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    title: str
    columns: int
    tiles: tuple[Tile, ...]

    @property
    def queries(self) -> list[str]:
        return [plot.query for tile in self.tiles for plot in tile.plots]


def dashboards(stack: Mapping[str, Any]) -> dict[str, Dashboard]:
    """By their titles."""
    resources = stack["resource"]["google_monitoring_dashboard"].values()
    return {made.title: made for made in (_dashboard(json.loads(resource["dashboard_json"])) for resource in resources)}


def _dashboard(described: Mapping[str, Any]) -> Dashboard:
    layout = described["mosaicLayout"]
    return Dashboard(
        title=described["displayName"], columns=layout["columns"], tiles=tuple(_tile(tile) for tile in layout["tiles"])
    )


def _tile(tile: Mapping[str, Any]) -> Tile:
    """Raises ValueError for a widget that nothing here draws."""
    widget = tile["widget"]
    common: dict[str, Any] = {
        "x": tile.get("xPos", 0),
        "y": tile.get("yPos", 0),
        "width": tile["width"],
        "height": tile["height"],
        "title": widget.get("title", ""),
    }
    if chart := widget.get("xyChart"):
        return Tile(
            **common,
            plots=tuple(_plot(data["timeSeriesQuery"], data["plotType"]) for data in chart["dataSets"]),
            axis=chart["yAxis"]["label"],
        )
    if card := widget.get("scorecard"):
        return Tile(**common, plots=(_plot(card["timeSeriesQuery"]),), scorecard=True)
    if text := widget.get("text"):
        return Tile(**common, text=text["content"])
    raise ValueError(f"tile '{common['title']}': neither xyChart, scorecard nor text: {', '.join(widget)}")


def _plot(query: Mapping[str, Any], kind: str = "LINE") -> Plot:
    return Plot(query=query["prometheusQuery"], kind=kind, unit=query.get("unitOverride", ""))


def alerts(stack: Mapping[str, Any]) -> list[dict[str, str]]:
    """The policies' conditions as Prometheus's alerting rules.

    https://cloud.google.com/monitoring/promql/promql-in-alerting
    """
    return [
        {
            "alert": policy["display_name"],
            "expr": condition["condition_prometheus_query_language"]["query"],
            "for": condition["condition_prometheus_query_language"].get("duration", "0s"),
        }
        for policy in stack["resource"]["google_monitoring_alert_policy"].values()
        for condition in policy["conditions"]
    ]
