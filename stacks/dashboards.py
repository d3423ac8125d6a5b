"""The dashboards, in the form of Cloud Monitoring's API: rows of charts, each with its queries.

https://cloud.google.com/monitoring/api/ref_v3/rest/v1/projects.dashboards
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from environment import Environment
from stacks.queries import Queries

COLUMNS = 48  # the most there may be
ROW = 16  # height of a row of charts, in the unit of a column's width
TEXT_ROW = 8


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Lines over time. `queries` by a word that tells their lines apart, "" for a single one."""

    title: str
    queries: dict[str, str]
    axis: str  # what the numbers are, with their unit
    unit: str = ""  # for numbers that are shown as GiB or minutes: "By", "s" and others of Cloud Monitoring's units
    stacked: bool = False

    def widget(self) -> dict[str, Any]:
        sets = [
            {
                "plotType": "STACKED_AREA" if self.stacked else "LINE",
                "targetAxis": "Y1",
                "timeSeriesQuery": {
                    "prometheusQuery": _labelled(query, word) if word else query,
                    **({"unitOverride": self.unit} if self.unit else {}),
                },
            }
            for word, query in self.queries.items()
        ]
        axis = {"label": self.axis, "scale": "LINEAR"}
        return {"title": self.title, "xyChart": {"dataSets": sets, "yAxis": axis}}


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number, now, with a small line of how it was."""

    title: str
    query: str

    def widget(self) -> dict[str, Any]:
        query = {"prometheusQuery": self.query}
        return {
            "title": self.title,
            "scorecard": {"timeSeriesQuery": query, "sparkChartView": {"sparkChartType": "SPARK_LINE"}},
        }


@dataclass(frozen=True, kw_only=True)
class Text:
    title: str
    content: str

    def widget(self) -> dict[str, Any]:
        return {"title": self.title, "text": {"content": self.content, "format": "MARKDOWN"}}


Tile = Chart | Number | Text


def _labelled(query: str, word: str) -> str:
    return f'label_replace({query}, "what", "{word}", "", "")'


def dashboards(environment: Environment) -> dict[str, dict[str, Any]]:
    """The dashboards of an environment, by a word for links."""
    prefix = environment.names.prefix
    return {
        "TPUs": _dashboard(f"{prefix}: TPUs", _tpus(Queries(environment))),
        "queues-and-jobs": _dashboard(f"{prefix}: queues and jobs", _queues(Queries(environment))),
    }


def _tpus(queries: Queries) -> list[list[Tile]]:
    duty, tensorcore = queries.duty_cycle(), queries.tensorcore()
    return [
        [
            Number(title="Duty cycle of all chips, %", query=f"avg({duty})"),
            Number(title="TensorCores of all chips, %", query=f"avg({tensorcore})"),
            Number(title="Chips that report", query=f"count({duty})"),
            Number(
                title="Slices that lack a host",
                query=f"count({queries.available()} == 0) or vector(0)",
            ),
        ],
        [
            Chart(title="Duty cycle by pool group", queries={"": queries.by_group(duty)}, axis="%"),
            Chart(title="Duty cycle by slice", queries={"": queries.by_slice(duty)}, axis="%"),
        ],
        [
            Chart(title="TensorCore utilization by pool group", queries={"": queries.by_group(tensorcore)}, axis="%"),
            Chart(title="TensorCore utilization by slice", queries={"": queries.by_slice(tensorcore)}, axis="%"),
        ],
        [
            Chart(
                title="HBM by slice",
                queries={"used": queries.memory_used(), "total": queries.memory_total()},
                axis="bytes",
                unit="By",
            ),
            Chart(title="HBM bandwidth by slice", queries={"": queries.by_slice(queries.memory_bandwidth())}, axis="%"),
        ],
        [
            Chart(
                title="Host network by slice",
                queries={"sent": queries.network("sent"), "received": queries.network("received")},
                axis="bytes a second",
                unit="By/s",
            ),
            Chart(
                title="Between slices: 99th percentile of a transfer, by team",
                queries={
                    "transfer": queries.between_slices("dcn_transfer"),
                    "collective": queries.between_slices("collective_end_to_end"),
                },
                axis="microseconds",
                unit="us",
            ),
        ],
        [
            Chart(title="Slices with all hosts: 1, else 0", queries={"": queries.available()}, axis="available"),
            Chart(title="Interruptions of nodes in 10 minutes", queries={"": queries.interruptions()}, axis="nodes"),
            Chart(
                title="Cloud NAT",
                queries={
                    "packets dropped in 5 minutes": (
                        f"sum by (reason) (increase({queries.nat('dropped_sent_packets_count')}[5m]))"
                    ),
                    "ports of one VM": f"max({queries.nat('port_usage')})",
                },
                axis="packets, ports",
            ),
        ],
    ]


def _queues(queries: Queries) -> list[list[Tile]]:
    cost = queries.cost()
    return [
        [
            Number(title="Jobs that wait", query=f"sum({queries.pending()})"),
            Number(title="Jobs that run", query=f"sum({queries.admitted()})"),
            Number(title="Chips in use", query=f"sum({queries.used('cluster_queue', 'flavor')})"),
            Number(title="Chips in all quotas", query=f"sum({queries.quota('cluster_queue', 'flavor')})"),
        ],
        [
            Chart(title="Jobs that wait, by team", queries={"": queries.pending()}, axis="jobs"),
            Chart(title="Chips that waiting jobs want, by team", queries={"": queries.waiting_chips()}, axis="chips"),
        ],
        _waits(queries, "Time in the queue", "kueue_admission_wait_time_seconds"),
        _waits(queries, "From admitted until ready", "kueue_admitted_until_ready_wait_time_seconds"),
        [
            Chart(
                title="Chips by team",
                queries={
                    "used": queries.used("cluster_queue"),
                    "quota": queries.quota("cluster_queue"),
                    "borrowed": queries.borrowed(),
                },
                axis="chips",
            ),
            Chart(title="Chips in use by pool group", queries={"": queries.used("flavor")}, axis="chips", stacked=True),
        ],
        [
            Chart(
                title="Chips held on which no pod runs, by team",
                queries={"": queries.held_without_pods()},
                axis="chips",
            ),
            Chart(
                title="Chips that wait for the rest of their slice, by Job",
                queries=queries.idle_in_part(),
                axis="chips",
            ),
        ],
        [
            Chart(title="Jobs preempted in an hour, for a team", queries={"": queries.preempted()}, axis="jobs"),
            Chart(title="Evicted jobs in an hour, by reason", queries={"": queries.evicted()}, axis="jobs"),
        ],
        [
            Chart(title="Restarts of JobSets", queries={"": queries.restarts()}, axis="restarts"),
            Chart(
                title="Slices of JobSets by team",
                queries={"specified": queries.replicas("specified"), "ready": queries.replicas("ready")},
                axis="slices",
            ),
        ],
        [
            Chart(
                title="Goodput of JobSets, by GKE",
                queries={
                    "all pods are ready": queries.goodput("scheduling"),
                    "all chips are busy": queries.goodput("proxy_runtime"),
                },
                axis="share of the time",
            ),
            Chart(
                title="Goodput that runs report",
                queries={"": queries.measured_goodput()},
                axis="share of the time",
            ),
            Chart(
                title="Lost time that runs report",
                queries={"": queries.badput()},
                axis="seconds",
                unit="s",
            ),
        ],
        [
            *([Chart(title="Cost of chips in use, by team", queries={"": cost}, axis="USD an hour")] if cost else []),
            Text(title="What the cost is", content=_cost_text(queries)),
        ],
    ]


def _waits(queries: Queries, title: str, metric: str) -> list[Tile]:
    shares = {"median": "0.5", "95th percentile": "0.95"}
    return [
        Chart(
            title=f"{title}: {word}, by team",
            queries={"": queries.waiting(metric, share)},
            axis="seconds",
            unit="s",
        )
        for word, share in shares.items()
    ]


def _cost_text(queries: Queries) -> str:
    known, unknown, prices = queries.prices()
    lines = []
    if known:
        each = ", ".join(f"{group} {price}" for group, price in known.items())
        where = ", ".join(f"[{source.as_of}]({source.source})" for source in prices.used)
        lines.append(f"Chips that jobs have, times the list price of a chip and hour in USD: {each} (of {where}).")
    if unknown:
        lines.append(f"**Not in it**, because no list price is known: {', '.join(unknown)}.")
    lines.append(
        "Without discounts, idle slices, CPU nodes, disks, network and Autopilot's premium: `tpuenv cost` estimates "
        "what there is to pay, the bill says what was paid."
    )
    return "\n\n".join(lines)


def _dashboard(name: str, rows: Sequence[Sequence[Tile]]) -> dict[str, Any]:
    tiles = []
    top = 0
    for row in rows:
        height = TEXT_ROW if all(isinstance(tile, Number | Text) for tile in row) else ROW
        for column, tile in enumerate(row):
            width = COLUMNS // len(row)
            place = {"xPos": column * width, "yPos": top}
            # The API leaves out what is 0, and the provider would plan to write it again and again.
            place = {key: value for key, value in place.items() if value}
            tiles.append({**place, "width": width, "height": height, "widget": tile.widget()})
        top += height
    return {"displayName": name, "mosaicLayout": {"columns": COLUMNS, "tiles": tiles}}
