"""What the pods of each kind ask for, as Kueue counts it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from admission import explain
from tests.admission_cases import Object, fleet, manifest_of


def _requests(manifest: Object, pod_set: str) -> dict[str, Fraction]:
    explanation = explain(fleet(), manifest)
    return dict(next(assigned for assigned in explanation.pod_sets if assigned.name == pod_set).requests)


def _cpu_job(**pod: object) -> Object:
    manifest = manifest_of("job-cpu")
    manifest["spec"].update({"parallelism": 1, "completions": 1})
    manifest["spec"]["template"]["spec"].update(pod)
    return manifest


def _container(cpu: str, **extra: object) -> Object:
    return {"name": f"c{cpu}", "image": "python:3.12", "resources": {"requests": {"cpu": cpu}}, **extra}


@pytest.mark.parametrize(
    ("pod", "cores"),
    [
        ({"containers": [_container("1"), _container("500m")]}, "1.5"),
        ({"containers": [_container("1")], "initContainers": [_container("3")]}, "3"),
        ({"containers": [_container("1")], "initContainers": [_container("3"), _container("2")]}, "3"),
        ({"containers": [_container("1")], "initContainers": [_container("3", restartPolicy="Always")]}, "4"),
        (
            {
                "containers": [_container("1")],
                "initContainers": [_container("2", restartPolicy="Always"), _container("3")],
            },
            "5",
        ),
        ({"containers": [_container("1")], "overhead": {"cpu": "250m"}}, "1.25"),
        ({"containers": [_container("1")], "resources": {"requests": {"cpu": "2"}}}, "2"),
        ({"containers": [_container("100.4u")]}, "0.001"),
    ],
)
def test_a_pod_s_requests_are_counted_as_the_scheduler_counts_them(pod: Object, cores: str) -> None:
    assert _requests(_cpu_job(**pod), "main")["cpu"] == Fraction(cores)


def test_no_more_pods_are_counted_than_are_to_complete() -> None:
    manifest = _cpu_job()
    manifest["spec"].update({"parallelism": 4, "completions": 2})
    assert explain(fleet(), manifest).pod_sets[0].count == 2


@pytest.mark.parametrize(
    ("cluster", "annotations", "cores"),
    [
        ({}, {}, "2"),
        ({"enableInTreeAutoscaling": True}, {"kueue.x-k8s.io/elastic-job": "true"}, "2.5"),
        (
            {"enableInTreeAutoscaling": True, "autoscalerOptions": {"resources": {"requests": {"cpu": "1"}}}},
            {"kueue.x-k8s.io/elastic-job": "true"},
            "3",
        ),
    ],
)
def test_what_kuberay_adds_to_the_head_is_counted(cluster: Object, annotations: Object, cores: str) -> None:
    manifest = manifest_of("raycluster-two-slices")
    manifest["spec"].update(cluster)
    manifest["metadata"]["annotations"] = annotations
    assert _requests(manifest, "head")["cpu"] == Fraction(cores)


@pytest.mark.parametrize("change", [{"spec": {"gcsFaultToleranceOptions": {}}}, {"annotation": "true"}])
def test_a_head_that_must_clean_redis_asks_for_at_least_that(change: Object) -> None:
    manifest = manifest_of("raycluster-two-slices")
    manifest["spec"].update(change.get("spec", {}))
    manifest["metadata"]["annotations"] = {"ray.io/ft-enabled": change["annotation"]} if "annotation" in change else {}
    head = manifest["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    head["resources"]["requests"]["cpu"] = "100m"
    assert _requests(manifest, "head")["cpu"] == Fraction("0.2")


def test_a_submitter_of_one_s_own_is_counted() -> None:
    manifest = manifest_of("rayjob-one-slice")
    assert _requests(manifest, "submitter")["cpu"] == Fraction("0.5")
    manifest["spec"]["submitterPodTemplate"] = {"spec": {"containers": [_container("2")]}}
    assert _requests(manifest, "submitter")["cpu"] == 2
