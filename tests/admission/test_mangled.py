"""What is no workload, or a mangled one, is reported by its field; nothing ends in a traceback."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission import NotAWorkload, Verdict, explain
from tests.admission_cases import CASES, Object, autopilot_fleet, fleet, manifest_of
from tests.examples import examples

NAMES = sorted(path.stem for path in CASES.glob("*.yaml"))


def test_a_template_that_was_not_rendered_is_reported() -> None:
    manifest = manifest_of("jobset-one-slice")
    manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] = "${HOSTS}"
    explanation = explain(fleet(), manifest)
    (reason,) = (reason for reason in explanation.reasons if reason.code == "wrong-type")
    assert reason.where == "spec.replicatedJobs[0].template.spec.parallelism"
    assert "check the rendered manifest" in reason.what


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "Pod"}, "kind: 'Pod' is not queued here"),
        ({"apiVersion": "jobset.x-k8s.io/v1"}, "use jobset.x-k8s.io/v1alpha2"),
    ],
)
def test_what_is_not_a_workload_is_reported_by_field(change: Mapping[str, object], words: str) -> None:
    manifest = manifest_of("jobset-one-slice")
    with pytest.raises(NotAWorkload, match=words):
        explain(fleet(), {**manifest, **change})


@pytest.mark.parametrize(
    ("change", "where", "what"),
    [
        ({"spec": []}, "spec", "[] is not a mapping of fields"),
        ({"metadata": {"name": "a", "labels": {"a": 1}}}, "metadata.labels.a", "1 is not text"),
    ],
)
def test_what_cannot_be_used_is_one_mistake_among_others(change: Mapping[str, object], where: str, what: str) -> None:
    explanation = explain(fleet(), {**manifest_of("jobset-one-slice"), **change})
    assert explanation.verdict == Verdict.REFUSED
    assert [(reason.where, reason.what) for reason in explanation.reasons if reason.code == "wrong-type"] == [
        (where, what)
    ]


_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["4", "4Gi", "1e99", "-1"]),
)
_ANYTHING = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@st.composite
def _mangled(draw: st.DrawFn) -> Object:
    """A manifest of the cases with anything at all put in, or taken out, at one to three places."""
    manifest = manifest_of(draw(st.sampled_from(NAMES)))
    for _ in range(draw(st.integers(1, 3))):
        at: Any = manifest
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(at[key], (dict, list)) and at[key] and draw(st.integers(0, 9)):
                at = at[key]
                continue
            if draw(st.booleans()):
                at[key] = draw(_ANYTHING)
            else:
                del at[key]
            break
    return manifest


@given(manifest=_mangled(), name=st.sampled_from(["one-team", "two-teams", "mixed", "autopilot"]))
@settings(max_examples=examples(150))
def test_no_manifest_makes_a_traceback(manifest: Object, name: str) -> None:
    try:
        explanation = explain(autopilot_fleet() if name == "autopilot" else fleet(name), manifest)
    except NotAWorkload as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert all(line and "\n" not in line for line in explanation.lines())


@given(manifest=_ANYTHING)
@settings(max_examples=examples(50))
def test_nothing_else_makes_a_traceback_either(manifest: object) -> None:
    with pytest.raises(NotAWorkload):
        explain(fleet(), manifest)


def test_a_number_of_any_length_makes_no_traceback() -> None:
    manifest = manifest_of("jobset-one-slice")
    for value in (10**5000, -1, 2**40, float("nan"), float("inf")):
        job = copy.deepcopy(manifest)
        job["spec"]["replicatedJobs"][0]["replicas"] = value
        explanation = explain(fleet(), job)
        assert [reason.where for reason in explanation.reasons] == ["spec.replicatedJobs[0].replicas"]
