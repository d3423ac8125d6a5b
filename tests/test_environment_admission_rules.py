"""The finer rules of admission, one at a time: tolerations, affinity, requests, preemption, limits, refusals."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from environment.admission import Explanation, Verdict, explain

CASES = Path(__file__).parent / "admission"

Object = dict[str, Any]


@cache
def _case(name: str) -> Object:
    _, manifest = yaml.safe_load_all((CASES / f"{name}.yaml").read_text(encoding="utf-8"))
    return manifest  # type: ignore[no-any-return]


def _manifest(name: str) -> Object:
    return copy.deepcopy(_case(name))


@cache
def _read_fleet(name: str) -> list[Object]:
    return list(yaml.safe_load_all((CASES / "fleets" / f"{name}.yaml").read_text(encoding="utf-8")))


def _fleet(name: str = "one-team") -> list[Object]:
    return copy.deepcopy(_read_fleet(name))


def _codes(found: Explanation) -> list[str]:
    return [reason.code for reason in found.reasons]


def _pod(manifest: Object, job: int = 0) -> Object:
    return manifest["spec"]["replicatedJobs"][job]["template"]["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def _queue(objects: list[Object], name: str) -> Object:
    return next(each for each in objects if (each["kind"], each["metadata"]["name"]) == ("ClusterQueue", name))


def _holder(name: str, queue: str, chips: int, *, priority: int = 0, flavor: str = "tpu") -> Object:
    """A Workload that holds chips and nothing else."""
    pod_set = {"name": "main", "flavors": {"google.com/tpu": flavor}, "resourceUsage": {"google.com/tpu": str(chips)}}
    return {
        "kind": "Workload",
        "metadata": {"name": name, "namespace": queue},
        "spec": {"priority": priority},
        "status": {"admission": {"clusterQueue": queue, "podSetAssignments": [pod_set]}},
    }


def _train(namespace: str, *, slices: int = 1, priority: str = "") -> Object:
    manifest = _manifest("jobset-chips-only")
    manifest["metadata"]["namespace"] = namespace
    if priority:
        manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = priority
    manifest["spec"]["replicatedJobs"][0]["replicas"] = slices
    return manifest


# Tolerations and affinity


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "google.com/tpu", "operator": "Exists"}, True),
        ({"key": "google.com/tpu", "value": "present"}, True),
        ({"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "google.com/tpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, False),
        ({"key": "google.com/tpu"}, False),
        ({"value": "present"}, False),
    ],
)
def test_a_toleration_is_matched_as_the_scheduler_does(toleration: Object, tolerated: bool) -> None:
    manifest = _manifest("jobset-one-slice")
    _pod(manifest)["tolerations"] = [toleration]
    assert _codes(explain(_fleet(), manifest)) == ([] if tolerated else ["missing-toleration"])


def test_a_taint_that_only_prefers_keeps_nobody_away() -> None:
    objects = _fleet()
    objects[1]["spec"]["nodeTaints"].append({"key": "spot", "effect": "PreferNoSchedule"})
    assert explain(objects, _manifest("jobset-one-slice")).verdict == Verdict.ADMITTED


def test_a_toleration_of_the_flavor_itself_counts() -> None:
    objects = _fleet()
    objects[1]["spec"]["tolerations"] = [{"key": "google.com/tpu", "operator": "Exists"}]
    assert explain(objects, _manifest("missing-toleration")).verdict == Verdict.ADMITTED


def _term(operator: str, *values: str, key: str = "cloud.google.com/gke-tpu-topology") -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        ([_term("In", "4x4")], True),
        ([_term("In", "8x8")], False),
        ([_term("In", "8x8"), _term("In", "4x4")], True),
        ([_term("In", "8x8"), _term("In", "2x2")], False),
        ([_term("NotIn", "8x8")], True),
        ([_term("NotIn", "4x4")], False),
        ([_term("Exists")], True),
        ([_term("DoesNotExist")], False),
        ([_term("In", "a", key="example.com/rack")], True),
        ([_term("In", "8x8"), _term("In", "a", key="example.com/rack")], True),
    ],
)
def test_affinity_terms_are_alternatives_and_count_only_where_the_flavor_has_the_key(
    terms: list[Object], matches: bool
) -> None:
    manifest = _manifest("jobset-no-selector")
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    _pod(manifest)["affinity"] = {"nodeAffinity": required}
    assert _codes(explain(_fleet(), manifest)) == ([] if matches else ["wrong-topology"])


@pytest.mark.parametrize(("operator", "limit", "matches"), [("Gt", "3", True), ("Lt", "3", False), ("Gt", "x", False)])
def test_affinity_compares_numbers(operator: str, limit: str, matches: bool) -> None:
    objects = _fleet()
    objects[1]["spec"]["nodeLabels"]["generation"] = "6"
    manifest = _manifest("jobset-one-slice")
    required = {"nodeSelectorTerms": [_term(operator, limit, key="generation")]}
    _pod(manifest)["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert (explain(objects, manifest).verdict == Verdict.ADMITTED) is matches


# Several pod sets, several flavors


def test_pod_sets_of_one_workload_add_up() -> None:
    manifest = _manifest("jobset-one-slice")
    (job,) = manifest["spec"]["replicatedJobs"]
    manifest["spec"]["replicatedJobs"] = [{**copy.deepcopy(job), "name": name} for name in ("a", "b")]
    assert explain(_fleet(), manifest).verdict == Verdict.ADMITTED
    manifest["spec"]["replicatedJobs"].append({**copy.deepcopy(job), "name": "c"})
    found = explain(_fleet(), manifest)
    assert [(each.code, each.where) for each in found.reasons] == [("too-many-slices", "c")]


def test_a_queue_may_rather_stop_a_job_than_try_the_next_flavor() -> None:
    objects = [*_fleet("mixed"), *(_holder(str(i), "research", 32, flavor="reserved") for i in range(1))]
    research = _queue(objects, "research")
    for other in [each for each in objects if each["kind"] == "ClusterQueue" and each is not research]:
        other["spec"].pop("cohortName", None)
    manifest = _manifest("v5p-takes-the-first-flavor")
    manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    assert explain(objects, manifest).pod_sets[0].flavor == "spot"
    research["spec"]["flavorFungibility"]["whenCanPreempt"] = "MayStopSearch"
    found = explain(objects, manifest)
    assert (found.pod_sets[0].flavor, found.preempts) == ("reserved", ("research/0",))


def test_where_everything_waits_the_flavor_that_can_be_had_is_named() -> None:
    """The first flavor has nobody to stop, the second has: the second is the better one."""
    objects = [
        *_fleet("mixed"),
        _holder("important", "research", 32, priority=1000, flavor="reserved"),
        _holder("cheap", "research", 32, priority=0, flavor="spot"),
    ]
    objects = [each for each in objects if each["metadata"]["name"] != "guests"]
    manifest = _manifest("v5p-takes-the-first-flavor")
    manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "medium"
    found = explain(objects, manifest)
    assert (found.pod_sets[0].flavor, found.preempts) == ("spot", ("research/cheap",))


def test_a_check_on_another_flavor_is_not_waited_for() -> None:
    manifest = _manifest("waits-for-provisioning")
    _pod(manifest)["nodeSelector"]["tpuenv/pool-group"] = "reserved"
    assert explain(_fleet("mixed"), manifest).verdict == Verdict.ADMITTED


def test_a_queue_on_hold_does_not_hide_that_it_would_never_start() -> None:
    manifest = _manifest("held-queue")
    _pod(manifest)["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = "8x8"
    found = explain(_fleet("mixed"), manifest)
    assert (found.verdict, sorted(_codes(found))) == (Verdict.NEVER, ["queue-stopped", "wrong-topology"])


def test_the_chips_of_a_host_are_the_annotation_s_before_the_catalogue_s() -> None:
    objects = _fleet("mixed")
    dev = next(each for each in objects if each["metadata"]["name"] == "dev")
    dev["metadata"]["annotations"] = {"tpuenv/node-chips": "8"}
    assert _codes(explain(objects, _manifest("v6e-2x4-one-host"))) == []
    assert "chips-per-host" in _codes(explain(objects, _manifest("v6e-2x4-two-hosts")))


def test_a_zero_of_something_that_no_queue_has_does_no_harm() -> None:
    manifest = _manifest("jobset-one-slice")
    resources = _pod(manifest)["containers"][0]["resources"]
    for each in ("requests", "limits"):
        resources[each]["nvidia.com/gpu"] = 0
    assert explain(_fleet(), manifest).verdict == Verdict.ADMITTED


# What is in use, and who has to stop


def test_amounts_of_all_pod_sets_are_in_use() -> None:
    holder = _holder("a", "tpu-training", 16)
    holder["status"]["admission"]["podSetAssignments"] *= 2
    assert explain([*_fleet(), holder], _train("tpu-training")).verdict == Verdict.WAITS


def test_a_borrower_at_its_limit_waits() -> None:
    manifest = _manifest("beyond-the-borrowing-limit")
    manifest["spec"]["replicatedJobs"][0]["replicas"] = 1
    assert explain(_fleet("mixed"), manifest).verdict == Verdict.ADMITTED
    full = [*_fleet("mixed"), _holder("a", "guests", 8, flavor="dev")]
    assert _codes(explain(full, manifest)) == ["quota-in-use"]


def test_who_would_borrow_takes_back_only_together_with_stopping_its_own() -> None:
    """Half of its quota is in use by a lower job of its own: it may not borrow and reclaim at the same time."""
    held = [_holder("theirs", "research", 24), _holder("own", "serving", 8)]
    found = explain([*_fleet("two-teams"), *held], _train("serving", priority="high"))
    assert sorted(found.preempts) == ["research/theirs", "serving/own"]


def test_who_would_borrow_and_may_stop_nobody_of_its_own_waits() -> None:
    held = [_holder("theirs", "research", 24), _holder("own", "serving", 8, priority=1000)]
    found = explain([*_fleet("two-teams"), *held], _train("serving", priority="high"))
    assert (found.verdict, found.preempts) == (Verdict.WAITS, ())


def test_a_team_is_stopped_only_as_long_as_it_borrows() -> None:
    objects = _fleet("two-teams")
    third = copy.deepcopy(_queue(objects, "serving"))
    third["metadata"]["name"] = "third"
    held = [
        _holder("a", "research", 8, priority=0),
        _holder("b", "research", 16, priority=1),
        _holder("c", "third", 24, priority=2),
    ]
    assert explain([*objects, third, *held], _train("serving")).preempts == ("third/c",)


def test_lower_or_newer_equal_priority_stops_lower_ones_only() -> None:
    """A job that is new now is not older than an equal one that runs."""
    objects = _fleet()
    _queue(objects, "tpu-training")["spec"]["preemption"]["withinClusterQueue"] = "LowerOrNewerEqualPriority"
    held = [_holder("a", "tpu-training", 32, priority=500)]
    assert explain([*objects, *held], _train("tpu-training", priority="medium")).preempts == ()
    assert explain([*objects, *held], _train("tpu-training", priority="high")).preempts == ("tpu-training/a",)


# What the pods of each kind ask for


def _requests(manifest: Object, pod_set: str) -> dict[str, Fraction]:
    found = explain(_fleet(), manifest)
    return dict(next(each for each in found.pod_sets if each.name == pod_set).requests)


def _cpu_job(**pod: object) -> Object:
    manifest = _manifest("job-cpu")
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
    assert explain(_fleet(), manifest).pod_sets[0].count == 2


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
    manifest = _manifest("raycluster-two-slices")
    manifest["spec"].update(cluster)
    manifest["metadata"]["annotations"] = annotations
    assert _requests(manifest, "head")["cpu"] == Fraction(cores)


@pytest.mark.parametrize("change", [{"spec": {"gcsFaultToleranceOptions": {}}}, {"annotation": "true"}])
def test_a_head_that_must_clean_redis_asks_for_at_least_that(change: Object) -> None:
    manifest = _manifest("raycluster-two-slices")
    manifest["spec"].update(change.get("spec", {}))
    manifest["metadata"]["annotations"] = {"ray.io/ft-enabled": change["annotation"]} if "annotation" in change else {}
    head = manifest["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    head["resources"]["requests"]["cpu"] = "100m"
    assert _requests(manifest, "head")["cpu"] == Fraction("0.2")


def test_a_submitter_of_one_s_own_is_counted() -> None:
    manifest = _manifest("rayjob-one-slice")
    assert _requests(manifest, "submitter")["cpu"] == Fraction("0.5")
    manifest["spec"]["submitterPodTemplate"] = {"spec": {"containers": [_container("2")]}}
    assert _requests(manifest, "submitter")["cpu"] == 2


# What is refused


def _name(name: str) -> Callable[[Object], object]:
    return lambda manifest: manifest["metadata"].update(name=name)


@pytest.mark.parametrize(
    ("case", "change", "code"),
    [
        ("job-cpu", lambda m: m["metadata"].pop("name"), "no-name"),
        ("job-cpu", _name("My_Job"), "bad-name"),
        ("jobset-one-slice", _name("1st"), "bad-name"),
        ("job-cpu", lambda m: m["spec"]["template"]["spec"].update(containers=[]), "no-containers"),
        ("jobset-one-slice", lambda m: m["spec"].update(replicatedJobs=[]), "no-pods"),
        ("jobset-one-slice", lambda m: m["spec"]["replicatedJobs"].extend(m["spec"]["replicatedJobs"]), "same-name"),
        ("rayjob-one-slice", lambda m: m["spec"].pop("rayClusterSpec"), "no-pods"),
        ("job-one-slice", lambda m: m["spec"].pop("completions"), "no-completions"),
        (
            "jobset-one-slice",
            lambda m: _pod(m)["containers"][0]["resources"]["limits"].update({"google.com/tpu": 8}),
            "chips-limit",
        ),
        (
            "raycluster-two-slices",
            lambda m: m["spec"].update(
                workerGroupSpecs=[{**m["spec"]["workerGroupSpecs"][0], "groupName": f"g{i}"} for i in range(18)]
            ),
            "too-many-pod-sets",
        ),
    ],
)
def test_what_the_api_server_would_refuse_is_refused(case: str, change: Callable[[Object], object], code: str) -> None:
    manifest = _manifest(case)
    change(manifest)
    found = explain(_fleet(), manifest)
    assert found.verdict == Verdict.REFUSED
    assert code in _codes(found)


def test_a_generated_name_counts_with_its_suffix() -> None:
    manifest = _manifest("jobset-one-slice")
    del manifest["metadata"]["name"]
    manifest["metadata"]["generateName"] = "a" * (63 - len("xxxxx-workers-0-3-abcde"))
    assert explain(_fleet(), manifest).verdict == Verdict.ADMITTED
    manifest["metadata"]["generateName"] += "a"
    assert _codes(explain(_fleet(), manifest)) == ["name-too-long"]


def test_what_a_terminal_would_interpret_is_escaped() -> None:
    manifest = _manifest("job-cpu")
    manifest["metadata"]["name"] = "a\x1b[2J\nb"
    assert explain(_fleet(), manifest).lines()[0] == r"Job tpu-training/a\x1b[2J\nb: would be refused"
