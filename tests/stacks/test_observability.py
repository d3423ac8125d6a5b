"""The stack `observability`: each query asks metrics that are documented, and what it takes to collect them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from environment import Environment, Refused, load
from stacks.queries import KUEUE, collected, metrics
from tests.synthesis import HERE, ROOT, Synthesis, read_stack, synthesize

STACK = "observability"
CASES = ["default", "autopilot", "three-teams-four-groups", "tpu7x"]
GOOGLE = r"[a-z0-9_]+:[a-z0-9_]+"
# Of Cloud Monitoring: which kind of resource a series is of, and the labels of a node.
EVERYWHERE = re.compile("monitored_resource|metadata_user_[a-z0-9_]+")


def of_settings(folder: Path, case: str = "default", **settings: str) -> dict[str, Any]:
    """The resources of the stack, by type."""
    file = HERE / "cases" / f"{case}.env"
    configured = load(file, process_env=settings, fleet=file.with_suffix(".fleet.yaml"))
    return dict(read_stack(synthesize(configured, folder), STACK)["resource"])


def tiles(stack: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tile, with the name of its dashboard."""
    for dashboard in stack["google_monitoring_dashboard"].values():
        content = json.loads(dashboard["dashboard_json"])
        for tile in content["mosaicLayout"]["tiles"]:
            yield content["displayName"], tile


def queries(stack: dict[str, Any]) -> list[str]:
    """Of the dashboards and the alerts."""
    found = []
    for _, tile in tiles(stack):
        chart, number = tile["widget"].get("xyChart"), tile["widget"].get("scorecard")
        asked = [*(chart["dataSets"] if chart else []), *([number] if number else [])]
        found += [item["timeSeriesQuery"]["prometheusQuery"] for item in asked]
    for policy in stack["google_monitoring_alert_policy"].values():
        found += [condition["condition_prometheus_query_language"]["query"] for condition in policy["conditions"]]
    return found


def asked_of(query: str) -> Iterator[tuple[str, set[str]]]:
    """The metrics of a query, each with the labels by which it selects series."""
    for name, matchers in re.findall(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}", query):
        yield name, set(re.findall(r"(\w+)(?:=~|!~|!=|=)\"", matchers))


def row_of(series: str) -> str:
    """The row's name of a series: a histogram has several."""
    rows = metrics()
    whole = re.sub("_(bucket|sum|count)$", "", series)
    return series if series in rows else whole


def in_cases(synthesis: Synthesis) -> list[str]:
    return [query for case in CASES for query in queries(synthesis.stack(case, STACK)["resource"])]


def test_every_metric_that_is_asked_is_in_the_file_and_none_else(synthesis: Synthesis) -> None:
    asked = {row_of(name) for query in in_cases(synthesis) for name, _ in asked_of(query)}
    assert asked == metrics().keys()


def test_a_query_selects_by_labels_that_the_metric_has(synthesis: Synthesis) -> None:
    for query in in_cases(synthesis):
        for name, labels in asked_of(query):
            unknown = {label for label in labels if not EVERYWHERE.fullmatch(label)}
            assert unknown <= set(metrics()[row_of(name)]["labels"]), query


def test_a_query_asks_for_nothing_of_other_clusters(synthesis: Synthesis) -> None:
    """A run that reports of itself says in which project it is, and not in which cluster."""
    for query in in_cases(synthesis):
        for name, labels in asked_of(query):
            if metrics()[row_of(name)]["from"] != "run":
                assert labels & {"cluster", "cluster_name", "gateway_name"}, query


@pytest.mark.parametrize("name", metrics())
def test_a_metric_has_the_name_that_cloud_monitoring_gives_it_in_promql(name: str) -> None:
    """https://cloud.google.com/monitoring/promql/promql-mapping"""
    row = metrics()[name]
    domain, _, path = row["cloud_monitoring"].partition("/")
    if domain == "prometheus.googleapis.com":
        kind = "histogram" if row.get("histogram") else "counter" if name.endswith("_total") else "gauge"
        assert path == f"{name}/{kind}"
    else:
        assert name == re.sub("[^a-z0-9_:]", "_", f"{domain}:{path}")
        assert re.fullmatch(GOOGLE, name)
    assert row["source"].startswith("https://") and row["what"]


def test_kueues_metrics_are_collected_as_far_as_they_are_asked(synthesis: Synthesis) -> None:
    series = {name for query in in_cases(synthesis) for name, _ in asked_of(query) if name.startswith("kueue_")}
    assert series and all(re.fullmatch(collected(), name) for name in series)
    assert {row_of(name) for name in series} == {name for name, row in metrics().items() if row["from"] == KUEUE}
    assert not re.fullmatch(collected(), "kueue_admission_attempts_total")


@pytest.mark.parametrize("case", CASES)
def test_gke_collects_what_is_billed_by_samples_only_where_a_query_asks_for_it(case: str, synthesis: Synthesis) -> None:
    """https://cloud.google.com/kubernetes-engine/docs/how-to/kube-state-metrics; SYSTEM_COMPONENTS are free."""
    cluster = synthesis.resources(case, "cluster", "google_container_cluster")["cluster"]
    collected_ = set(cluster["monitoring_config"]["enable_components"])
    asked = {name for query in in_cases(synthesis) for name, _ in asked_of(query)}
    asked = {name.split("_")[1].upper() for name in asked if name.startswith("kube_")}
    assert collected_ == {"SYSTEM_COMPONENTS", *asked} == {"SYSTEM_COMPONENTS", "POD", "JOBSET"}


def rendered(stack: dict[str, Any]) -> dict[str, Any]:
    """The objects of the chart by kind, as Helm makes them of the release's values: it has no other expressions."""
    (release,) = stack["helm_release"].values()
    values = {f".Values.{name}": value for name, value in json.loads(release["values"][0]).items()}
    values |= {".Release.Name": release["name"], ".Release.Namespace": release["namespace"]}
    values |= {f"{name} | quote": json.dumps(value) for name, value in values.items()}
    text = (ROOT / "charts" / "metrics" / "templates" / "metrics.yaml").read_text(encoding="utf-8")
    text = re.sub(r"\{\{ (.*?) \}\}", lambda match: str(values[match[1]]), text)
    return {item["kind"]: item for item in yaml.safe_load_all(text)}


@pytest.mark.parametrize(("case", "namespace"), [("default", "gmp-system"), ("autopilot", "gke-gmp-system")])
def test_the_collector_alone_reads_the_token_with_which_it_asks_kueue(
    case: str, namespace: str, synthesis: Synthesis
) -> None:
    objects = rendered(synthesis.stack(case, STACK)["resource"])
    (endpoint,) = objects["PodMonitoring"]["spec"]["endpoints"]
    secret = endpoint["authorization"]["credentials"]["secret"]["name"]
    assert objects["Secret"]["metadata"]["name"] == secret
    assert objects["Role"]["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret], "verbs": ["get", "list", "watch"]}
    ]
    assert objects["RoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": "collector", "namespace": namespace}
    ]
    account = objects["Secret"]["metadata"]["annotations"]["kubernetes.io/service-account.name"]
    assert account == objects["ServiceAccount"]["metadata"]["name"]
    assert objects["ClusterRoleBinding"]["roleRef"]["name"] == "kueue-metrics-reader"
    assert objects["ClusterRoleBinding"]["subjects"][0]["name"] == account
    assert endpoint["metricRelabeling"][0]["regex"] == collected()


@pytest.mark.parametrize("case", CASES)
def test_no_tile_covers_another_and_none_is_without_a_place(case: str, synthesis: Synthesis) -> None:
    taken: dict[tuple[str, int, int], str] = {}
    for dashboard, tile in tiles(synthesis.stack(case, STACK)["resource"]):
        left, top = tile.get("xPos", 0), tile.get("yPos", 0)
        assert left + tile["width"] <= 48
        for column in range(left, left + tile["width"]):
            for row in range(top, top + tile["height"]):
                assert taken.setdefault((dashboard, column, row), tile["widget"]["title"]) == tile["widget"]["title"]


def cost_of(stack: dict[str, Any]) -> tuple[str, str]:
    """The query of the cost, and the text beside it."""
    widgets = {tile["widget"]["title"]: tile["widget"] for _, tile in tiles(stack)}
    chart = widgets.get("Cost of chips in use, by team")
    query = chart["xyChart"]["dataSets"][0]["timeSeriesQuery"]["prometheusQuery"] if chart else ""
    return query, widgets["What the cost is"]["text"]["content"]


def test_cost_is_the_list_price_of_each_pool_group(synthesis: Synthesis) -> None:
    query, text = cost_of(synthesis.stack("three-teams-four-groups", STACK)["resource"])
    assert re.findall(r'flavor="([\w-]+)"}\) \* ([\d.]+)', query) == [("dev", "1.215"), ("serve", "2.7")]
    assert "dev 1.215, serve 2.7 (of [2026-02-26](https://" in text
    assert "**Not in it**, because no list price is known: pretrain, burst." in text


def test_where_no_price_is_known_none_is_shown(synthesis: Synthesis) -> None:
    query, text = cost_of(synthesis.stack("tpu7x", STACK)["resource"])
    assert query == ""
    assert text.startswith("**Not in it**, because no list price is known: tpu.")


def test_alerts_are_sent_to_every_address_and_without_one_to_nobody(tmp_path: Path, synthesis: Synthesis) -> None:
    stack = of_settings(tmp_path, ALERT_EMAILS="oncall@example.com, lead@example.com")
    channels = stack["google_monitoring_notification_channel"]
    addresses = {channel["labels"]["email_address"] for channel in channels.values()}
    assert addresses == {"oncall@example.com", "lead@example.com"}
    names = {f"${{google_monitoring_notification_channel.{id_}.name}}" for id_ in channels}
    policies = stack["google_monitoring_alert_policy"].values()
    assert all(set(policy["notification_channels"]) == names for policy in policies)
    without = synthesis.stack("default", STACK)["resource"]
    assert "google_monitoring_notification_channel" not in without
    assert not any("notification_channels" in policy for policy in without["google_monitoring_alert_policy"].values())


def test_an_alert_can_be_created_before_its_metric_has_a_value(synthesis: Synthesis) -> None:
    for policy in synthesis.stack("default", STACK)["resource"]["google_monitoring_alert_policy"].values():
        (condition,) = policy["conditions"]
        assert condition["condition_prometheus_query_language"]["disable_metric_validation"] is True
        assert policy["documentation"]["content"]


def test_without_it_the_other_stacks_are_the_same(tmp_path: Path, synthesis: Synthesis) -> None:
    file = HERE / "cases" / "default.env"
    folder = synthesize(load(file, process_env={"OBSERVABILITY": "false"}), tmp_path)
    left = sorted(path.name for path in (folder / "stacks").iterdir())
    assert left == ["cluster", "foundation", "platform", "queues", "tpu-node-pools"]
    assert all(read_stack(folder, stack) == synthesis.stack("default", stack) for stack in left)


def configured(**settings: str) -> Environment:
    return load(HERE / "cases" / "default.env", process_env=settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"ALERT_EMAILS": "oncall"},
            "ALERT_EMAILS: 'oncall' is not an email address; write addresses such as alice@example.com, a group's too "
            "without group:, and commas or spaces between them",
        ),
        ({"ALERT_EMAILS": "group:a@example.com"}, "ALERT_EMAILS: 'group:a@example.com' is not an email address"),
        (
            {"ALERT_EMAILS": "a@example.com;b@example.com, c@example.com"},
            "cannot be used: 'a@example.com;b@example.com' is not an email address",
        ),
        (
            {"ALERT_EMAILS": "a@example.com,a@example.com"},
            "ALERT_EMAILS: 'a@example.com,a@example.com' cannot be used: 'a@example.com' is there twice; keep one",
        ),
        (
            {"ALERT_EMAILS": ",".join(f"a{number}@example.com" for number in range(17))},
            "there are 17 addresses, and 16 at most; name a mailing list",
        ),
        (
            {"ALERT_EMAILS": "a@example.com", "OBSERVABILITY": "false"},
            "ALERT_EMAILS: 'a@example.com' gets no email with OBSERVABILITY=false",
        ),
    ],
)
def test_addresses_that_get_no_alert_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(Refused) as refused:
        configured(**settings)
    assert message in str(refused.value)


def test_addresses_that_differ_by_special_characters_have_a_channel_each(tmp_path: Path) -> None:
    addresses = ["a.b@example.com", "ab@example.com", "a+b@example.com"]
    stack = of_settings(tmp_path, ALERT_EMAILS=", ".join(addresses))
    channels = stack["google_monitoring_notification_channel"].values()
    assert {channel["labels"]["email_address"] for channel in channels} == set(addresses)
    for policy in stack["google_monitoring_alert_policy"].values():
        assert len(set(policy["notification_channels"])) == len(addresses)
