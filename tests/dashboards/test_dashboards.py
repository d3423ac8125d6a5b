"""The pictures in docs/ are what the dashboards show of a sample day, and each alert was seen to fire and not to."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from environment.project import ROOT
from stacks.queries import metrics
from tests.dashboards import results
from tests.dashboards.axis import axis_for
from tests.dashboards.series_notation import series_of, text_of, values_of
from tests.generate.dashboard_pictures import PICTURES, pictures

LARGEST_PICTURE = 100_000  # bytes


def test_prometheus_has_evaluated_the_queries_and_alerts_of_now() -> None:
    read = results.read()
    queries = [query for dashboard in results.drawn().values() for query in dashboard.queries]
    changed = "the queries, alerts or samples have changed: run `make test-dashboards` (it needs Go)"
    assert read.series.keys() == {*queries}, changed
    assert read.rules == results.watched(), changed
    assert read.samples == results.checksum_of_the_samples(), changed


def test_every_query_has_a_result_with_the_samples() -> None:
    empty = [query for query, series in results.read().series.items() if not any(any(values) for _, values in series)]
    assert not empty, "a label or a metric of these queries is not as documented, or its samples are all 0"


def test_every_metric_has_samples_with_its_labels() -> None:
    labels_of: dict[str, set[str]] = {}
    for series in results.samples():
        name, _, labels = series.partition("{")
        labels_of.setdefault(name.removesuffix("_bucket"), set()).update(re.findall(r'(\w+)="', labels))
    assert labels_of.keys() == metrics().keys()
    assert {name: set(row["labels"]) - labels_of[name] for name, row in metrics().items()} == {
        name: set() for name in metrics()
    }


def test_every_alert_fires_in_the_samples_and_is_silent_before_and_after() -> None:
    (group,) = results.unit_tests()["tests"]
    fires: dict[str, list[bool]] = {}
    for test in group["alert_rule_test"]:
        fires.setdefault(test["alertname"], []).append(bool(test["exp_alerts"]))
    assert fires.keys() == {rule["alert"] for rule in results.watched()}
    for alert, seen in fires.items():
        assert [seen[0], seen[-1]] == [False, False] and any(seen), alert


@pytest.mark.parametrize("path", PICTURES)
def test_each_picture_is_what_is_drawn(path: str) -> None:
    drawn = pictures()[path]
    assert (ROOT / path).read_text(encoding="utf-8") == drawn, "run `make snapshots`"
    assert len(drawn.encode()) < LARGEST_PICTURE
    ElementTree.fromstring(drawn)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0+5x2 7", [0, 5, 10, 7]),
        ("3-1x2 _x2 1", [3, 2, 1, None, None, 1]),
        ("1.5x2 _", [1.5, 1.5, 1.5, None]),
    ],
)
def test_the_notation_of_series_is_prometheus_own(text: str, values: list[float | None]) -> None:
    assert values_of(text) == values
    assert values_of(text_of(values)) == values


def test_a_value_that_is_not_in_the_notation_is_named() -> None:
    with pytest.raises(ValueError, match="'5y3'"):
        values_of("1 5y3")


def test_a_label_with_several_values_makes_a_series_for_each() -> None:
    assert [*series_of('up{a="1|2",b="3"}')] == ['up{a="1",b="3"}', 'up{a="2",b="3"}']


@pytest.mark.parametrize(
    ("values", "unit", "texts", "name"),
    [
        ([0.0, 92.5], "", ["0", "25", "50", "75", "100"], ""),
        ([3.0, 1.0], "", ["0", "1", "2", "3"], ""),
        ([0.0, 3.2 * 2**30], "By", ["0", "1", "2", "3", "4"], "GiB"),
        ([5400.0], "s", ["0", "0.5", "1", "1.5"], "hours"),
        ([-2.0, 2.0], "", ["-2", "-1", "0", "1", "2"], ""),
        ([], "", ["0", "1"], ""),
    ],
)
def test_an_axis_has_round_values_around_its_own(values: list[float], unit: str, texts: list[str], name: str) -> None:
    axis = axis_for(values, unit)
    assert (axis.texts, axis.unit) == (texts, name)
