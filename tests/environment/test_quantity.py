"""Amounts for people: what a message says there is can be asked for, and what was too much reads as more than that."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission import Explanation, Verdict, explain
from tests.admission_cases import Object, fleet, manifest_of
from tests.examples import examples
from vocabulary.quantity import parse, readable

RESOURCES = st.sampled_from(["cpu", "memory", "google.com/tpu", "ephemeral-storage"])
AMOUNTS = st.fractions(0, 2**60) | st.integers(0, 2**60).map(Fraction) | st.fractions(0, 4, max_denominator=10_000)


@given(RESOURCES, AMOUNTS)
def test_what_there_is_is_rounded_down_and_what_is_asked_is_rounded_up(resource: str, number: Fraction) -> None:
    low, high = parse(readable(resource, number)), parse(readable(resource, number, up=True))
    assert low <= number <= high
    assert high - low <= max(number / 100, Fraction(1, 1000))


@pytest.mark.parametrize(
    ("resource", "number", "down", "up"),
    [
        ("memory", Fraction(5344) * 2**30, "5.21Ti", "5.22Ti"),
        ("memory", Fraction(64 * 2**30), "64Gi", "64Gi"),
        ("memory", Fraction(2**30 - 1), "1023.99Mi", "1024Mi"),
        ("cpu", Fraction(3, 2), "1.5", "1.5"),
        ("cpu", Fraction(1, 3), "0.333", "0.334"),
        ("google.com/tpu", Fraction(16), "16", "16"),
    ],
)
def test_amounts_read_well(resource: str, number: Fraction, down: str, up: str) -> None:
    assert (readable(resource, number), readable(resource, number, up=True)) == (down, up)


def _job(*, pods: int, resource: str, each: str) -> Object:
    manifest = manifest_of("job-cpu")
    manifest["spec"].update({"parallelism": pods, "completions": pods})
    requests = {"cpu": "100m", "memory": "1Mi", resource: each}
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": requests}
    return manifest


def _followed(explanation: Explanation, pods: int) -> Fraction:
    """What each pod asks for when the advice is followed to the letter."""
    most = []
    for reason in explanation.reasons:
        match = re.fullmatch(r"ask for ([0-9.]+[A-Za-z]*) (cpu|memory) or less", reason.fix)
        assert match, reason
        most.append(parse(match[1]) / (pods if reason.code == "too-big" else 1))
    return min(most)


@settings(max_examples=examples(60))
@given(st.integers(1, 5), st.sampled_from(["cpu", "memory"]), st.integers(2**44, 2**50), st.integers(0, 10**9))
def test_following_the_advice_always_fits(pods: int, resource: str, excess: int, used: int) -> None:
    """On quotas of any odd size: 5 cores less so many billionths of one, 20 GB less so many bytes."""
    objects = fleet()
    for item in objects:
        if item["kind"] == "ClusterQueue":
            (group,) = (one for one in item["spec"]["resourceGroups"] if one["coveredResources"] == ["cpu", "memory"])
            cores, memory = group["flavors"][0]["resources"]
            cores["nominalQuota"], memory["nominalQuota"] = f"{5 * 10**9 - used}n", str(20 * 10**9 - used)
    too_much = _job(pods=pods, resource=resource, each=str(excess))
    explanation = explain(objects, too_much)
    assert explanation.verdict == Verdict.NEVER
    each_pod = _followed(explanation, pods)
    written = f"{int(each_pod * 1000)}m" if resource == "cpu" else str(int(each_pod))
    assert explain(objects, _job(pods=pods, resource=resource, each=written)).verdict == Verdict.ADMITTED
