"""Which flavor the pods of a workload get: tolerations, affinity, several pod sets, several flavors."""

from __future__ import annotations

import copy

import pytest

from admission import Verdict, explain
from tests.admission_cases import Object, codes_of, fleet, holder, manifest_of, pod_of, queue_of


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
    manifest = manifest_of("jobset-one-slice")
    pod_of(manifest)["tolerations"] = [toleration]
    assert ("missing-toleration" in codes_of(explain(_tainted(), manifest))) == (not tolerated)


def _tainted() -> list[Object]:
    """A fleet whose TPU flavor has the taint of its nodes, and tolerates nothing."""
    objects = fleet()
    objects[1]["spec"]["nodeTaints"] = [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]
    del objects[1]["spec"]["tolerations"]
    return objects


def test_a_taint_of_the_flavor_that_the_template_does_not_tolerate_comes_with_what_to_add() -> None:
    explanation = explain(_tainted(), manifest_of("jobset-no-toleration"))
    assert codes_of(explanation) == ["missing-toleration"]
    assert "key: google.com/tpu, operator: Exists, effect: NoSchedule" in explanation.reasons[0].fix


def test_a_taint_that_only_prefers_keeps_nobody_away() -> None:
    objects = fleet()
    objects[1]["spec"]["nodeTaints"] = [{"key": "spot", "effect": "PreferNoSchedule"}]
    assert explain(objects, manifest_of("jobset-one-slice")).verdict == Verdict.ADMITTED


def test_a_toleration_of_the_flavor_itself_counts() -> None:
    objects = _tainted()
    objects[1]["spec"]["tolerations"] = [{"key": "google.com/tpu", "operator": "Exists"}]
    assert explain(objects, manifest_of("jobset-no-toleration")).verdict == Verdict.ADMITTED


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
    manifest = manifest_of("jobset-no-selector")
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod_of(manifest)["affinity"] = {"nodeAffinity": required}
    assert codes_of(explain(fleet(), manifest)) == ([] if matches else ["wrong-topology"])


@pytest.mark.parametrize(("operator", "limit", "matches"), [("Gt", "3", True), ("Lt", "3", False), ("Gt", "x", False)])
def test_affinity_compares_numbers(operator: str, limit: str, matches: bool) -> None:
    objects = fleet()
    objects[1]["spec"]["nodeLabels"]["generation"] = "6"
    manifest = manifest_of("jobset-one-slice")
    required = {"nodeSelectorTerms": [_term(operator, limit, key="generation")]}
    pod_of(manifest)["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert (explain(objects, manifest).verdict == Verdict.ADMITTED) is matches


# Several pod sets, several flavors


def test_pod_sets_of_one_workload_add_up() -> None:
    manifest = manifest_of("jobset-one-slice")
    (job,) = manifest["spec"]["replicatedJobs"]
    manifest["spec"]["replicatedJobs"] = [{**copy.deepcopy(job), "name": name} for name in ("a", "b")]
    assert explain(fleet(), manifest).verdict == Verdict.ADMITTED
    manifest["spec"]["replicatedJobs"].append({**copy.deepcopy(job), "name": "c"})
    explanation = explain(fleet(), manifest)
    assert [(reason.code, reason.where) for reason in explanation.reasons] == [("too-many-slices", "c")]


def test_a_queue_may_rather_stop_a_job_than_try_the_next_flavor() -> None:
    objects = [*fleet("mixed"), *(holder(str(i), "research", 32, flavor="reserved") for i in range(1))]
    research = queue_of(objects, "research")
    for other in [item for item in objects if item["kind"] == "ClusterQueue" and item is not research]:
        other["spec"].pop("cohortName", None)
    manifest = manifest_of("v5p-takes-the-first-flavor")
    manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    assert explain(objects, manifest).pod_sets[0].flavor == "spot"
    research["spec"]["flavorFungibility"]["whenCanPreempt"] = "MayStopSearch"
    explanation = explain(objects, manifest)
    assert (explanation.pod_sets[0].flavor, explanation.preempts) == ("reserved", ("research/0",))


def test_where_everything_waits_the_flavor_that_can_be_had_is_named() -> None:
    """The first flavor has nobody to stop, the second has: the second is the better one."""
    objects = [
        *fleet("mixed"),
        holder("important", "research", 32, priority=1000, flavor="reserved"),
        holder("cheap", "research", 32, priority=0, flavor="spot"),
    ]
    objects = [item for item in objects if item["metadata"]["name"] != "guests"]
    manifest = manifest_of("v5p-takes-the-first-flavor")
    manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "medium"
    explanation = explain(objects, manifest)
    assert (explanation.pod_sets[0].flavor, explanation.preempts) == ("spot", ("research/cheap",))


def test_a_check_on_another_flavor_is_not_waited_for() -> None:
    manifest = manifest_of("waits-for-provisioning")
    pod_of(manifest)["nodeSelector"]["tpuenv/pool-group"] = "reserved"
    assert explain(fleet("mixed"), manifest).verdict == Verdict.ADMITTED


def test_a_queue_on_hold_does_not_hide_that_it_would_never_start() -> None:
    manifest = manifest_of("held-queue")
    pod_of(manifest)["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = "8x8"
    explanation = explain(fleet("mixed"), manifest)
    assert (explanation.verdict, sorted(codes_of(explanation))) == (Verdict.NEVER, ["queue-stopped", "wrong-topology"])


def test_the_annotation_of_a_flavor_gives_the_chips_of_a_host() -> None:
    objects = fleet("mixed")
    dev = next(item for item in objects if item["metadata"]["name"] == "dev")
    dev["metadata"]["annotations"] = {"tpuenv/node-chips": "8"}
    assert codes_of(explain(objects, manifest_of("v6e-2x4-one-host"))) == []
    assert "chips-per-host" in codes_of(explain(objects, manifest_of("v6e-2x4-two-hosts")))


def test_a_zero_of_something_that_no_queue_has_does_no_harm() -> None:
    manifest = manifest_of("jobset-one-slice")
    resources = pod_of(manifest)["containers"][0]["resources"]
    for amounts in ("requests", "limits"):
        resources[amounts]["nvidia.com/gpu"] = 0
    assert explain(fleet(), manifest).verdict == Verdict.ADMITTED
