"""Admission, explained: every manifest in tests/admission gets the answer above it, also when others use the queues."""

from __future__ import annotations

import copy
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission import Explanation, Verdict, explain
from admission.api_server.defaults import with_defaults
from admission.cluster import read_cluster
from environment.kubernetes.queues import queue_objects
from tests.crd_schemas import errors_of
from tests.examples import examples
from tests.loading import loaded
from tests.yaml_files import documents

CASES = Path(__file__).parent.parent / "admission" / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.yaml"))

Object = dict[str, Any]


def _case(name: str) -> tuple[Object, Object]:
    """The expected answer, and the manifest."""
    answer, manifest = documents(CASES / f"{name}.yaml")
    return answer, manifest


@cache
def _fleet(name: str) -> tuple[Object, ...]:
    return tuple(documents(CASES.parent / "fleets" / f"{name}.yaml"))


def _in_use(answer: Object) -> list[Object]:
    """The Workloads that hold quota, as Kueue would have written them."""
    return [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {"name": usage["workload"], "namespace": usage["clusterQueue"]},
            "spec": {"priority": usage["priority"], "podSets": []},
            "status": {
                "admission": {
                    "clusterQueue": usage["clusterQueue"],
                    "podSetAssignments": [
                        {
                            "name": "main",
                            "count": 4,
                            "flavors": {
                                resource: usage["flavor"] if resource == "google.com/tpu" else "cpu"
                                for resource in usage["resourceUsage"]
                            },
                            "resourceUsage": usage["resourceUsage"],
                        }
                    ],
                }
            },
        }
        for usage in answer.get("in_use", [])
    ]


def _accounts(answer: Object, manifest: Object) -> list[Object]:
    """The service accounts of the manifest's namespace, where the case depends on which there are."""
    namespace = manifest["metadata"]["namespace"]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
        for name in answer.get("accounts", [])
    ]


def _explained(name: str, *, without_host_access: bool = False) -> tuple[Object, Explanation]:
    answer, manifest = _case(name)
    objects = [*_fleet(answer["fleet"]), *_in_use(answer), *_accounts(answer, manifest)]
    if "refused_without_host_access" in answer and not without_host_access:
        labels = {"tpuenv/host-access": "true"}
        objects.append({"kind": "Namespace", "metadata": {"name": manifest["metadata"]["namespace"], "labels": labels}})
    return answer, explain(objects, manifest)


def test_there_are_enough_cases_right_and_wrong() -> None:
    verdicts = [_case(name)[0]["verdict"] for name in NAMES]
    wrong = sum(verdict in ("never", "refused") for verdict in verdicts)
    assert len(verdicts) >= 40
    assert 20 <= wrong <= len(verdicts) - 20


@pytest.mark.parametrize("name", NAMES)
def test_each_manifest_gets_its_expected_answer(name: str) -> None:
    answer, explanation = _explained(name)
    text = "\n".join(explanation.lines())
    assert explanation.verdict == answer["verdict"], text
    assert [reason.code for reason in explanation.reasons] == answer.get("reasons", []), text
    if "flavors" in answer:
        assert {assigned.name: assigned.flavor for assigned in explanation.pod_sets} == answer["flavors"], text
    for pod_set, slices in answer.get("slices", {}).items():
        assert {assigned.name: assigned.slices for assigned in explanation.pod_sets}[pod_set] == slices, text
    assert list(explanation.preempts) == answer.get("preempts", []), text
    for flavor, amounts in answer.get("borrows", {}).items():
        for resource, number in amounts.items():
            assert explanation.borrows[flavor, resource] == number, text
    for words in answer.get("says", []):
        assert words in text
    for words in answer.get("silent", []):
        assert words not in text, text


@pytest.mark.parametrize("name", [name for name in NAMES if "refused_without_host_access" in _case(name)[0]])
def test_a_documented_manifest_that_asks_for_the_host_is_refused_for_that_alone(name: str) -> None:
    answer, explanation = _explained(name, without_host_access=True)
    assert explanation.verdict == "refused"
    codes = [reason.code for reason in explanation.reasons if reason.code not in answer.get("reasons", [])]
    assert codes == answer["refused_without_host_access"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_wrong_comes_with_what_to_do(name: str) -> None:
    _, explanation = _explained(name)
    for reason in explanation.reasons:
        assert reason.fix or reason.verdict == Verdict.WAITS, reason


@pytest.mark.parametrize("name", [name for name in NAMES if _case(name)[0]["verdict"] in ("admitted", "waits")])
def test_the_right_manifests_are_valid_kubernetes_objects(name: str) -> None:
    """With what the webhooks fill in before the API server validates it."""
    manifest = _case(name)[1]
    assert errors_of(with_defaults(manifest, manifest["kind"])) == []


@pytest.mark.parametrize("name", ["one-team", "two-teams", "mixed", "zones"])
def test_the_fleets_are_valid_kubernetes_objects(name: str) -> None:
    assert [error for item in _fleet(name) for error in errors_of(item)] == []


def test_the_first_fleet_is_what_the_default_settings_make() -> None:
    for fleet, keys in (("one-team", {}), ("large-cpu-nodes", {"CPU_MACHINE_TYPE": "n2-standard-16"})):
        made = queue_objects(loaded(**keys))
        assert _fleet(fleet) == tuple(item for item in made if item["kind"] != "ResourceQuota")


def test_the_admission_is_valid_in_a_workload_and_counts_as_in_use() -> None:
    answer, manifest = _case("jobset-two-slices")
    objects = list(_fleet(answer["fleet"]))
    first = explain(objects, manifest)
    template = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "first", "namespace": "tpu-training"},
        "spec": {"podSets": [{"name": "workers", "count": 8, "template": template}]},
        "status": {"admission": first.admission()},
    }
    second = explain([*objects, workload], manifest)
    assert (first.verdict, second.verdict) == (Verdict.ADMITTED, Verdict.WAITS)
    assert errors_of(workload) == []


def test_a_finished_workload_holds_nothing() -> None:
    answer, manifest = _case("waits-for-a-slice")
    finished = _in_use(answer)
    for workload in finished:
        workload["status"]["conditions"] = [{"type": "Finished", "status": "True"}]
    assert explain([*_fleet(answer["fleet"]), *finished], manifest).verdict == Verdict.ADMITTED


def test_a_manifest_without_a_namespace_goes_to_the_one_given() -> None:
    answer, manifest = _case("jobset-one-slice")
    del manifest["metadata"]["namespace"]
    objects = _fleet(answer["fleet"])
    assert explain(objects, manifest, namespace="tpu-training").verdict == Verdict.ADMITTED
    assert [reason.code for reason in explain(objects, manifest).reasons] == ["unknown-queue"]


def test_a_missing_namespace_is_reported() -> None:
    answer, manifest = _case("jobset-one-slice")
    namespaces = [{"kind": "Namespace", "metadata": {"name": "other"}}]
    explanation = explain([*_fleet(answer["fleet"]), *namespaces], manifest)
    assert [reason.code for reason in explanation.reasons] == ["no-namespace"]


def test_a_namespace_may_be_selected_by_its_own_labels() -> None:
    answer, manifest = _case("jobset-one-slice")
    objects = copy.deepcopy(list(_fleet(answer["fleet"])))
    queue = next(item for item in objects if item["kind"] == "ClusterQueue")
    queue["spec"]["namespaceSelector"] = {"matchExpressions": [{"key": "team", "operator": "Exists"}]}
    namespace: Object = {"kind": "Namespace", "metadata": {"name": "tpu-training", "labels": {"team": "a"}}}
    assert explain([*objects, namespace], manifest).verdict == Verdict.ADMITTED
    namespace["metadata"]["labels"] = {}
    assert [reason.code for reason in explain([*objects, namespace], manifest).reasons] == ["namespace-not-selected"]


def _with_quota(**changes: object) -> list[Object]:
    """The fleet of two teams, with other keys in the specs of both ClusterQueues."""
    objects = copy.deepcopy(list(_fleet("two-teams")))
    for item in objects:
        if item["kind"] == "ClusterQueue":
            item["spec"].update(copy.deepcopy(changes))
    return objects


def _train(namespace: str, *, slices: int = 1, priority: str = "") -> Object:
    _, manifest = _case("jobset-one-slice")
    manifest["metadata"]["namespace"] = namespace
    if priority:
        manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = priority
    manifest["spec"]["replicatedJobs"][0]["replicas"] = slices
    return manifest


def _used(name: str, queue: str, *, slices: int = 1, priority: int = 0, since: str = "") -> Object:
    usage = {"cpu": str(16 * slices), "memory": f"{64 * slices}Gi", "google.com/tpu": str(16 * slices)}
    answer = {"workload": name, "clusterQueue": queue, "priority": priority, "flavor": "tpu", "resourceUsage": usage}
    workload = _in_use({"in_use": [answer]})[0]
    workload["status"]["conditions"] = [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": since}]
    return workload


def test_without_reclaim_a_team_waits_for_what_it_lent() -> None:
    objects = [*_with_quota(preemption={"reclaimWithinCohort": "Never"}), _used("big", "research", slices=2)]
    explanation = explain(objects, _train("serving"))
    assert (explanation.verdict, explanation.preempts) == (Verdict.WAITS, ())


def test_reclaim_of_lower_priority_only_spares_the_others() -> None:
    objects = [
        *_with_quota(preemption={"reclaimWithinCohort": "LowerPriority"}),
        _used("big", "research", slices=2, priority=500),
    ]
    assert explain(objects, _train("serving", priority="medium")).preempts == ()
    assert explain(objects, _train("serving", priority="high")).preempts == ("research/big",)


def test_reclaim_stops_only_what_is_borrowed_newest_first() -> None:
    objects = [
        *_fleet("two-teams"),
        _used("old", "research", since="2030-01-01T00:00:00Z"),
        _used("new", "research", since="2030-01-02T00:00:00Z"),
    ]
    assert explain(objects, _train("serving")).preempts == ("research/new",)


def test_a_team_within_its_quota_is_never_preempted_by_another() -> None:
    objects = [*_fleet("two-teams"), _used("own", "research"), _used("theirs", "serving", priority=500)]
    explanation = explain(objects, _train("serving"))
    assert (explanation.verdict, explanation.preempts) == (Verdict.WAITS, ())


def test_a_workload_that_needs_two_stops_no_third() -> None:
    objects = [
        *_fleet("one-team"),
        _used("small-1", "tpu-training", priority=100),
        _used("small-2", "tpu-training", priority=100),
    ]
    manifest = _train("tpu-training", priority="high")
    assert explain(objects, manifest).preempts == ("tpu-training/small-1",)
    manifest["spec"]["replicatedJobs"][0]["replicas"] = 2
    assert sorted(explain(objects, manifest).preempts) == ["tpu-training/small-1", "tpu-training/small-2"]


def test_those_that_turn_out_not_to_be_needed_go_on() -> None:
    """The lowest holds half a slice, which is not enough; the next holds a whole one, which is enough without it."""
    half, kept = _used("half", "tpu-training", priority=100), _used("kept", "tpu-training", priority=1000)
    for workload in (half, kept):
        workload["status"]["admission"]["podSetAssignments"][0]["resourceUsage"]["google.com/tpu"] = "8"
    objects = [*_fleet("one-team"), half, kept, _used("other", "tpu-training", priority=250)]
    assert explain(objects, _train("tpu-training", priority="high")).preempts == ("tpu-training/other",)


def test_a_lending_limit_keeps_a_slice_at_home() -> None:
    objects = _with_quota()
    serving = next(item for item in objects if item["kind"] == "ClusterQueue" and item["metadata"]["name"] == "serving")
    serving["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = "0"
    assert explain(objects, _train("research", slices=2)).verdict == Verdict.NEVER
    assert explain([*objects, _used("a", "research")], _train("serving")).verdict == Verdict.ADMITTED


def test_what_a_team_can_have_is_not_called_that_of_all_teams_where_some_is_never_lent() -> None:
    objects = copy.deepcopy(list(_fleet("two-teams")))
    serving = next(item for item in objects if item["metadata"]["name"] == "serving")
    serving["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = "0"
    (reason,) = explain(objects, _train("research", slices=2)).reasons
    assert reason.what.endswith("; ClusterQueue research can have 1 slice (16 chips), for other teams lend no more")
    assert "ask for 1 slice (16 chips) or less" in reason.fix


def test_trying_the_next_flavor_before_borrowing_is_respected() -> None:
    objects = copy.deepcopy(list(_fleet("mixed")))
    research = next(
        item for item in objects if item["metadata"]["name"] == "research" and item["kind"] == "ClusterQueue"
    )
    reserved = research["spec"]["resourceGroups"][0]["flavors"][0]
    reserved["resources"][0]["nominalQuota"] = "0"
    _, manifest = _case("v5p-takes-the-first-flavor")
    assert explain(objects, manifest).pod_sets[0].flavor == "spot"  # nobody has a reserved slice to lend
    lender = copy.deepcopy(research)
    lender["metadata"]["name"] = "lender"
    lender["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = "32"
    assert explain([*objects, lender], manifest).pod_sets[0].flavor == "reserved"
    research["spec"]["flavorFungibility"]["whenCanBorrow"] = "TryNextFlavor"
    assert explain([*objects, lender], manifest).pod_sets[0].flavor == "spot"


@given(
    jobs=st.lists(
        st.tuples(
            st.sampled_from(["research", "serving"]),
            st.integers(1, 3),
            st.sampled_from(["", "low", "medium", "high"]),
        ),
        max_size=8,
    )
)
@settings(max_examples=examples(100))
def test_admitted_jobs_never_hold_more_than_exists_and_reclaim_always_succeeds(
    jobs: list[tuple[str, int, str]],
) -> None:
    """A fake of Kueue: admit what is admitted, stop what is to be stopped and then admit."""
    objects = list(_fleet("two-teams"))
    held: dict[str, Object] = {}
    for number, (team, slices, priority) in enumerate(jobs):
        manifest = _train(team, slices=slices, priority=priority)
        explanation = explain([*objects, *held.values()], manifest)
        if explanation.preempts:
            for name in explanation.preempts:
                del held[name]
            explanation = explain([*objects, *held.values()], manifest)
            assert explanation.verdict == Verdict.ADMITTED
        if explanation.verdict == Verdict.ADMITTED:
            held[f"{team}/{number}"] = {
                "kind": "Workload",
                "metadata": {"name": str(number), "namespace": team},
                "spec": {"priority": explanation.priority},
                "status": {"admission": explanation.admission()},
            }
        cluster = read_cluster([*objects, *held.values()])
        total = sum(cluster.used(name, ("tpu", "google.com/tpu")) for name in cluster.cluster_queues)
        assert total <= Fraction(32)
        assert (explanation.verdict == Verdict.NEVER) == (slices > 2)
