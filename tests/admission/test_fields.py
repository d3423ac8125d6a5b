"""Fields that no API server knows, that are missing, or that hold something else: as strict validation has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from admission import NotAWorkload, Reason, Verdict, explain
from tests.admission_cases import Object, fleet, manifest_of, pod_of
from tests.crd_schemas import errors_of
from tests.examples import examples
from tests.generate.field_table import TABLE, table

RIGHT = [
    *("job-cpu", "job-one-slice", "jobset-driver-and-slice", "jobset-node-affinity", "jobset-init-container"),
    *("raycluster-two-slices", "rayjob-one-slice"),
]
_NO_PLACES = ("apiVersion", "kind")
_DEFAULTED = ("minReplicas", "maxReplicas")  # the schemas demand them and fill them in
_CODES = ("unknown-field", "missing-field", "wrong-type")


def _reasons(manifest: Object) -> list[Reason]:
    return [reason for reason in explain(fleet(), manifest).reasons if reason.code in _CODES]


def test_the_table_is_what_the_schemas_say() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(), "run python -m tests.generate.field_table"


def test_every_type_of_the_table_is_there_and_used() -> None:
    lines = re.sub(r"<[^>]*>", "", TABLE.read_text(encoding="utf-8").replace("\n  ", " ")).strip().splitlines()
    names = {line.partition(": ")[0] for line in lines}
    used = {
        field.rstrip("]}").replace("{", ":").replace("[", ":").rpartition(":")[2]
        for line in lines
        for field in line.partition(": ")[2].split()
        if field.rstrip("]}")[-1:].isalnum() and any(mark in field for mark in ":[{")
    }
    assert used - {""} <= names
    assert names <= used | {"Job", "JobSet", "RayCluster", "RayJob"}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_manifest_has_nothing_wrong_in_its_fields(name: str) -> None:
    assert _reasons(manifest_of(name)) == []


def test_all_mistakes_in_a_manifest_are_reported_at_once() -> None:
    manifest = manifest_of("jobset-one-slice")
    manifest["spec"]["suspended"] = True
    pod_of(manifest)["hostNetwork"] = "yes"
    del pod_of(manifest)["containers"][0]["name"]
    explanation = explain(fleet(), manifest)
    assert explanation.verdict == Verdict.REFUSED
    assert sorted(reason.code for reason in explanation.reasons) == ["missing-field", "unknown-field", "wrong-type"]


@pytest.mark.parametrize(
    ("key", "fix"),
    [
        ("TOLERATIONS", "did you mean tolerations?"),
        ("node_selector", "did you mean nodeSelector?"),
        ("parallelism", "it belongs further out: check the indentation"),
        ("imagePullPolicy", "it belongs in containers"),
        ("gpu", "remove it"),
    ],
)
def test_a_field_that_is_none_comes_with_what_was_meant(key: str, fix: str) -> None:
    manifest = manifest_of("jobset-one-slice")
    pod_of(manifest)[key] = 1
    assert [reason.fix for reason in _reasons(manifest)] == [fix]


def test_a_field_without_a_value_is_one_that_is_not_there() -> None:
    manifest = manifest_of("jobset-one-slice")
    pod_of(manifest)["volumes"] = None
    assert _reasons(manifest) == []
    manifest["spec"]["replicatedJobs"][0]["template"] = None
    assert [reason.code for reason in _reasons(manifest)] == ["missing-field"]


def _places(value: Any) -> Iterator[tuple[Object, str]]:
    """Every mapping of the spec and each of its keys, but for names that are free: labels, selectors, requests."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in (*_NO_PLACES, *_DEFAULTED):
                yield value, key
            if key not in ("labels", "annotations", "nodeSelector", "requests", "limits", "matchLabels"):
                yield from _places(inner)
    elif isinstance(value, list):
        for item in value:
            yield from _places(item)


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(RIGHT), st.data())
def test_what_strict_validation_refuses_is_refused_and_nothing_else(name: str, data: st.DataObject) -> None:
    """One key renamed, taken away or given another value."""
    manifest = manifest_of(name)
    places = list(_places(manifest["spec"]))
    holder, key = places[data.draw(st.integers(0, len(places) - 1))]
    value = holder.pop(key)
    new = data.draw(st.sampled_from(["renamed", "gone", "x", 3, True, [], {}, ["x"], {"x": 1}]))
    if new == "renamed":
        holder[key + "s"] = value
    elif new != "gone":
        holder[key] = new
    strict = errors_of(manifest)
    try:
        refused = bool(_reasons(manifest))
    except NotAWorkload:
        refused = True  # reported as a manifest that cannot be read, by its field
    assert refused or not strict, strict
    if _reasons_alone(manifest):
        assert strict


def _reasons_alone(manifest: Object) -> bool:
    try:
        return bool(_reasons(manifest))
    except NotAWorkload:
        return False
