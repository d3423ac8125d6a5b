"""What Prometheus made of the samples: the series of every query, and the alerting rules that it tested."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from environment.project import ROOT
from tests.dashboards.dashboards import Dashboard, alerts, dashboards
from tests.dashboards.series_notation import series_of, text_of, values_of
from tests.yaml_files import documents

HOURS = 12  # the length of the samples
STEP = 300  # seconds between two values of a result

FOLDER = Path(__file__).resolve().parent
SAMPLES = FOLDER / "samples.yaml"
RESULTS = FOLDER / "results.yaml"

_CASE = "three-teams-four-groups"
_SNAPSHOTS = ROOT / "tests" / "stacks" / "__snapshots__" / "test_snapshots"

_HEAD = "# Written by `make test-dashboards`: what Prometheus makes of samples.yaml, a value for each five minutes.\n"

Series = tuple[Mapping[str, str], Sequence[float | None]]


@dataclass(frozen=True, kw_only=True)
class Results:
    """`samples` is a checksum of their file; `rules` are the alerting rules that were tested with them."""

    samples: str
    rules: Sequence[Mapping[str, str]]
    series: Mapping[str, Sequence[Series]]


def read() -> Results:
    (file,) = documents(RESULTS)
    return Results(
        samples=file["samples"],
        rules=file["rules"],
        series={
            item["query"]: [(series["labels"], values_of(series["values"])) for series in item["series"]]
            for item in file["queries"]
        },
    )


def write(results: Results) -> None:
    described = {
        "samples": results.samples,
        "rules": [dict(rule) for rule in results.rules],
        "queries": [
            {
                "query": query,
                "series": [{"labels": dict(labels), "values": text_of(values)} for labels, values in series],
            }
            for query, series in results.series.items()
        ],
    }
    RESULTS.write_text(_HEAD + yaml.safe_dump(described, sort_keys=False, width=10_000), encoding="utf-8")


def checksum_of_the_samples() -> str:
    return hashlib.sha256(SAMPLES.read_bytes()).hexdigest()


def unit_tests() -> dict[str, Any]:
    """The samples and the alerts that they must raise, as `promtool test rules` reads them."""
    (file,) = documents(SAMPLES)
    for group in file["tests"]:
        group["input_series"] = [
            {"series": series, "values": item["values"]}
            for item in group["input_series"]
            for series in series_of(item["series"])
        ]
    tests: dict[str, Any] = file
    return tests


def samples() -> dict[str, str]:
    """Values by the name and labels of their series."""
    return {item["series"]: item["values"] for group in unit_tests()["tests"] for item in group["input_series"]}


def drawn() -> dict[str, Dashboard]:
    """The dashboards of the stack, by their titles."""
    return dashboards(_stack())


def watched() -> list[dict[str, str]]:
    """The alerting rules of the stack."""
    return alerts(_stack())


def of_every_case() -> set[str]:
    """The queries of dashboards and alerts in all snapshots."""
    stacks = [_read(snapshot) for snapshot in _SNAPSHOTS.glob("*-observability].json")]
    return {query for stack in stacks for dashboard in dashboards(stack).values() for query in dashboard.queries} | {
        rule["expr"] for stack in stacks for rule in alerts(stack)
    }


def _stack() -> Any:
    (snapshot,) = _SNAPSHOTS.glob(f"*[[]{_CASE}-observability].json")
    return _read(snapshot)


def _read(snapshot: Path) -> Any:
    """tests/stacks/test_snapshots.py holds it equal to what is synthesized."""
    return json.loads(snapshot.read_text(encoding="utf-8"))
