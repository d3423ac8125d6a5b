"""Every rule has a manifest that breaks it alone, and whose answer changes once the rule is taken out."""

from __future__ import annotations

from functools import cache

import pytest

from admission import Explanation, Verdict, all_rules, explain
from admission.all_rules import RULES
from admission.boundary import Boundary
from admission.kueue.workload_reader import read
from admission.rule import Rule
from admission.workload import Workload
from tests.admission_cases import (
    CASES,
    Object,
    RuleCase,
    autopilot_fleet,
    codes_of,
    fleet,
    manifest_of,
    pod_of,
    queue_of,
    rule_cases,
)
from tests.generate.admission_rules_table import PAGE, page

NAMES = sorted(path.stem for path in CASES.glob("*.yaml"))


def _explained(case: RuleCase) -> Explanation:
    return explain(autopilot_fleet() if case.autopilot else fleet(), case.manifest())


@pytest.mark.parametrize("case", rule_cases(), ids=str)
def test_a_manifest_with_one_mistake_gets_that_answer_alone(case: RuleCase) -> None:
    explanation = _explained(case)
    text = "\n".join(explanation.lines())
    assert sorted(set(codes_of(explanation))) == sorted({case.code, *case.also}), text
    assert case.says in text


@pytest.mark.parametrize("name", sorted({case.of for case in rule_cases()}))
def test_what_a_rule_is_tried_on_breaks_none_before(name: str) -> None:
    assert set(codes_of(explain(fleet(), manifest_of(name)))) <= {"autoscaling"}


@cache
def _broken() -> tuple[tuple[Workload, frozenset[str]], ...]:
    """Every case and every manifest beside them, read, with the codes of the rules that it breaks."""
    manifests = [case.manifest() for case in rule_cases()] + [manifest_of(name) for name in NAMES]
    workloads = [read(manifest, namespace="default")[0] for manifest in manifests]
    return tuple((workload, _codes(workload)) for workload in workloads)


def _codes(workload: Workload) -> frozenset[str]:
    within = Boundary(images=("registry.example.com/",))
    return frozenset(reason.code for reason in all_rules.refusals(workload, autopilot=True, within=within))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.code}-{rule.source}")
def test_without_the_rule_the_answer_to_its_manifest_is_another(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    if rule.code in ("too-many-worker-groups", "too-many-pod-sets"):
        return  # test_kueue_takes_eighteen_kinds_of_pods
    broken = _broken()
    monkeypatch.setattr(all_rules, "RULES", tuple(other for other in RULES if other is not rule))
    if any(rule.code in codes and rule.code not in _codes(workload) for workload, codes in broken):
        return
    pytest.fail(f"no manifest of tests/admission is red without {rule.code} of {rule.source}")


def test_the_page_of_rules_is_what_they_are() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.generate.admission_rules_table"


def test_rules_differ_by_code_and_source() -> None:
    assert len({(rule.code, rule.source) for rule in RULES}) == len(RULES)


def test_what_the_webhooks_fill_in_is_not_missing() -> None:
    manifest = manifest_of("jobset-one-slice")
    manifest["spec"]["failurePolicy"] = {
        "maxRestarts": 3,
        "rules": [{"action": "FailJobSet"}, {"action": "FailJobSet"}],
    }
    del manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["restartPolicy"]
    manifest["spec"]["network"] = {"enableDNSHostnames": True}
    manifest["spec"]["volumeClaimPolicies"] = []
    explanation = explain(fleet(), manifest)
    assert (explanation.verdict, codes_of(explanation)) == (Verdict.ADMITTED, [])


def test_one_mistake_does_not_hide_the_others() -> None:
    """Of the API server, the schema, JobSet, Kueue and GKE at once."""
    manifest = manifest_of("jobset-one-slice")
    job = manifest["spec"]["replicatedJobs"][0]
    manifest["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "long"
    manifest["spec"]["coordinator"] = {"replicatedJob": "nobody"}
    job["replcas"] = 1
    job["template"]["spec"]["parallelism"] = job["template"]["spec"]["completions"] = 2
    job["template"]["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
    explanation = explain(fleet(), manifest)
    assert explanation.verdict == Verdict.REFUSED
    assert sorted(codes_of(explanation)) == [
        *("coordinator", "hosts-per-slice", "max-time", "pod-priority", "unknown-field"),
    ]


def _wrong_chips_and_topology(topology: str) -> Object:
    manifest = manifest_of("jobset-one-slice")
    pod = pod_of(manifest)
    pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = topology
    resources = pod["containers"][0]["resources"]
    resources["requests"]["google.com/tpu"] = resources["limits"]["google.com/tpu"] = 8
    return manifest


@pytest.mark.parametrize("here", ["default", "the-only-one"])
def test_an_unknown_queue_does_not_hide_the_other_mistakes(here: str) -> None:
    objects = fleet()
    next(item for item in objects if item["kind"] == "LocalQueue")["metadata"]["name"] = here
    manifest = _wrong_chips_and_topology("8x8")
    manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "multislice-queue"
    explanation = explain(objects, manifest)
    assert (explanation.verdict, codes_of(explanation)) == (
        Verdict.NEVER,
        ["unknown-queue", "wrong-topology", "chips-per-host"],
    )
    assert (explanation.local_queue, explanation.cluster_queue) == ("", "")


def test_an_unknown_queue_does_not_wait_for_what_the_default_one_waits_for() -> None:
    objects = fleet()
    next(item for item in objects if item["kind"] == "LocalQueue")["spec"]["stopPolicy"] = "Hold"
    manifest = manifest_of("jobset-one-slice")
    manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "multislice-queue"
    assert codes_of(explain(objects, manifest)) == ["unknown-queue"]


def test_a_wrong_topology_does_not_hide_what_is_wrong_with_the_pods() -> None:
    manifest = _wrong_chips_and_topology("4x8")
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = job["completions"] = 2
    requests = pod_of(manifest)["containers"][0]["resources"]["requests"]
    requests["cpu"] = "1k"
    codes = ["wrong-topology", "chips-per-host", "hosts-per-slice", "node-too-small"]
    reported = codes_of(explain(fleet(), manifest))
    assert sorted({*reported} - {"too-big"}) == sorted(codes)
    pod_of(manifest)["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = "4x4"
    assert sorted(codes_of(explain(fleet(), manifest))) == sorted(code for code in reported if code != "wrong-topology")


def test_a_wrong_topology_does_not_hide_pods_that_are_not_indexed() -> None:
    manifest = manifest_of("not-indexed")
    selector = manifest["spec"]["template"]["spec"]["nodeSelector"]
    selector["cloud.google.com/gke-tpu-topology"] = "4x8"
    assert codes_of(explain(fleet(), manifest)) == ["wrong-topology", "not-indexed"]


def test_a_topology_that_the_affinity_excludes_does_not_hide_the_chips() -> None:
    manifest = _wrong_chips_and_topology("4x4")
    pod = pod_of(manifest)
    del pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"]
    wrong = {"key": "cloud.google.com/gke-tpu-topology", "operator": "In", "values": ["4x8"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [wrong]}]}
    pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert codes_of(explain(fleet(), manifest)) == ["wrong-topology", "chips-per-host"]


def test_a_wrong_topology_does_not_hide_the_hosts_of_a_worker_group() -> None:
    manifest = manifest_of("raycluster-one-host")
    group = manifest["spec"]["workerGroupSpecs"][0]
    group["numOfHosts"] = 1
    pod = group["template"]["spec"]
    pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = "2x4"
    resources = pod["containers"][0]["resources"]
    resources["requests"]["google.com/tpu"] = resources["limits"]["google.com/tpu"] = 8
    reported = codes_of(explain(fleet(), manifest))
    assert reported == ["wrong-topology", "chips-per-host", "hosts-per-slice"]


def test_a_misspelt_field_counts_for_what_it_was_meant_to_be() -> None:
    manifest = manifest_of("jobset-one-slice")
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["paralelism"] = job.pop("parallelism")
    assert codes_of(explain(fleet(), manifest)) == ["unknown-field"]


def test_a_number_in_quotes_counts_as_the_number() -> None:
    manifest = manifest_of("jobset-one-slice")
    manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] = "4"
    assert codes_of(explain(fleet(), manifest)) == ["wrong-type"]


def test_a_workload_that_exists_already_is_read_from_the_objects() -> None:
    manifest = manifest_of("job-cpu")
    manifest["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = "mine"
    workload = {"kind": "Workload", "metadata": {"name": "mine", "namespace": manifest["metadata"]["namespace"]}}
    assert codes_of(explain([*fleet(), workload], manifest)) == []


def test_a_priority_class_of_the_environment_gives_the_priority() -> None:
    manifest = manifest_of("job-cpu")
    manifest["spec"]["template"]["spec"]["priorityClassName"] = "high"
    explanation = explain([*fleet(), {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 750}], manifest)
    assert (codes_of(explanation), explanation.priority) == ([], 750)


def _groups(count: int) -> list[Object]:
    template = {"spec": {"containers": [{"name": "a", "image": "a"}]}}
    return [{"groupName": f"g{number}", "rayStartParams": {}, "template": template} for number in range(count)]


@pytest.mark.parametrize(
    ("name", "count", "code"),
    [
        ("raycluster-two-slices", 17, ""),
        ("raycluster-two-slices", 18, "too-many-worker-groups"),
        ("rayjob-one-slice", 16, ""),
        ("rayjob-one-slice", 17, "too-many-pod-sets"),
        ("rayjob-one-slice", 18, "too-many-worker-groups"),
        ("jobset-one-slice", 18, ""),
        ("jobset-one-slice", 19, "too-many-pod-sets"),
    ],
)
def test_kueue_takes_eighteen_kinds_of_pods(name: str, count: int, code: str) -> None:
    """Of KubeRay's the head and the submitter are two."""
    manifest = manifest_of(name)
    spec = manifest["spec"]
    if manifest["kind"] == "JobSet":
        template = {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a"}]}}}}
        spec["replicatedJobs"] = [{"name": f"j{number}", "template": template} for number in range(count)]
    else:
        (spec if manifest["kind"] == "RayCluster" else spec["rayClusterSpec"])["workerGroupSpecs"] = _groups(count)
    assert codes_of(explain(fleet(), manifest)) == ([code] if code else [])


def test_a_pool_group_of_other_teams_is_named_as_such() -> None:
    """The team's ClusterQueue has no quota of the group's flavor; the flavor is there."""
    objects = fleet("mixed")
    research = queue_of(objects, "research")
    groups = research["spec"]["resourceGroups"]
    for group in groups:
        group["flavors"] = [flavor for flavor in group["flavors"] if flavor["name"] != "dev"]
    manifest = manifest_of("jobset-one-slice")
    manifest["metadata"]["namespace"] = "research"
    pod_of(manifest)["nodeSelector"] = {"tpuenv/pool-group": "dev"}
    explanation = explain(objects, manifest)
    assert (explanation.verdict, codes_of(explanation)) == (Verdict.NEVER, ["pool-group-of-others"])
    assert "pool group 'dev' is not among those that team research may use: " in explanation.lines()[3]
    pod_of(manifest)["nodeSelector"]["tpuenv/pool-group"] = "nowhere"
    assert "pool-group-of-others" not in codes_of(explain(objects, manifest))
