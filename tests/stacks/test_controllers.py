"""Kueue, JobSet and our own programs share no node with the teams, can do nothing to theirs, and few reach them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from environment.cpu_machine_types import system_machine_type
from environment.names import JOBSET_NAMESPACE, KUEUE_NAMESPACE
from stacks.charts import CHARTS
from stacks.controllers import ACCOUNTS
from tests.synthesis import CASES, Synthesis, stacks_of

STANDARD = [case for case in CASES if case != "autopilot"]
SYSTEM = {"tpuenv/pool-group": "system"}
TAINT = {"key": "tpuenv/system", "value": "true"}
PROGRAMS = [chart.name for chart in sorted(CHARTS.iterdir()) if (chart / "files").is_dir()]

Values = dict[str, Any]


def releases(synthesis: Synthesis, case: str) -> Iterator[Values]:
    for stack in ("platform", "queues"):
        yield from synthesis.resources(case, stack, "helm_release").values()


def placed(release: Values) -> Values:
    """What a chart's values say of where its pods run."""
    values: Values = json.loads(release["values"][0])
    return dict(values.get({"kueue": "controllerManager", "jobset": "controller"}.get(release["name"], ""), values))


@pytest.mark.parametrize("case", STANDARD)
def test_everything_of_ours_runs_on_the_system_pool(case: str, synthesis: Synthesis) -> None:
    for release in releases(synthesis, case):
        where = placed(release)
        assert where["nodeSelector"] == SYSTEM, release["name"]
        assert where["tolerations"] == [{**TAINT, "operator": "Equal", "effect": "NoSchedule"}], release["name"]


@pytest.mark.parametrize("case", STANDARD)
def test_one_pool_has_the_taint_and_two_nodes_of_the_smallest_machines(case: str, synthesis: Synthesis) -> None:
    pools = {
        pool["name"]: pool
        for stack in ("cluster", "tpu-node-pools")
        for pool in synthesis.resources(case, stack, "google_container_node_pool").values()
    }
    system = pools.pop("system")
    assert system["node_config"]["taint"] == [{**TAINT, "effect": "NO_SCHEDULE"}]
    assert system["node_config"]["labels"] == SYSTEM
    smallest = system_machine_type(synthesis.environment(case).settings.cpu_machine_type).name
    assert (system["node_config"]["machine_type"], system["node_count"]) == (smallest, 2)
    for pool in pools.values():
        assert not pool["node_config"].get("taint") and pool["node_config"]["labels"] != SYSTEM


def test_on_autopilot_gke_makes_the_nodes(synthesis: Synthesis) -> None:
    assert not synthesis.resources("autopilot", "cluster", "google_container_node_pool")
    for release in releases(synthesis, "autopilot"):
        assert not {"nodeSelector", "tolerations"} & placed(release).keys()


def test_no_manifest_of_a_team_goes_there(synthesis: Synthesis) -> None:
    for case in STANDARD:
        for path in (synthesis.folder(case) / "manifests").rglob("*.yaml"):
            text = path.read_text(encoding="utf-8")
            assert TAINT["key"] not in text and "pool-group: system" not in text, path


@pytest.mark.parametrize("case", CASES)
def test_the_namespaces_of_the_controllers_take_restricted_pods_only(case: str, synthesis: Synthesis) -> None:
    namespaces = synthesis.resources(case, "platform", "kubernetes_namespace_v1")
    for name in (KUEUE_NAMESPACE, JOBSET_NAMESPACE):
        assert namespaces[name]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for release in releases(synthesis, case):
        assert release["namespace"] in (KUEUE_NAMESPACE, JOBSET_NAMESPACE)
        assert "ecurityContext" not in release["values"][0], "the charts' own comply"


@pytest.mark.parametrize("chart", PROGRAMS)
def test_the_pods_of_our_programs_are_restricted(chart: str) -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    (template,) = (CHARTS / chart / "templates").glob("*.yaml")
    text = re.sub(r"^\{\{-.*\}\}$", "", template.read_text(encoding="utf-8"), flags=re.MULTILINE)
    documents = yaml.safe_load_all(re.sub(r"\{\{.*?\}\}", "x", text))
    (job,) = (document for document in documents if document["kind"] == "Job")
    pod = job["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert [list(volume.keys() - {"name"}) for volume in pod["volumes"]] == [["configMap"]]
    for container in pod["containers"]:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def reached(policy: Values, namespace: str) -> set[int]:
    """The ports that pods of another namespace reach."""
    ports: set[int] = set()
    for rule in policy["ingress"]:
        selectors = [peer["namespaceSelector"]["matchExpressions"] for peer in rule.get("from", [])]
        if not selectors or any(namespace in each["values"] for (each,) in selectors):
            ports |= {port["port"] for port in rule["ports"]}
    return ports


@pytest.mark.parametrize("case", CASES)
def test_the_controllers_are_reached_where_they_are_called_and_nowhere_else(case: str, synthesis: Synthesis) -> None:
    """Webhooks and Kueue's API by the control plane, which comes from anywhere; Kueue's metrics by their collectors."""
    policies = {
        item["manifest"]["metadata"]["namespace"]: item["manifest"]["spec"]
        for item in synthesis.resources(case, "platform", "kubernetes_manifest").values()
        if item["manifest"]["kind"] == "NetworkPolicy" and item["manifest"]["metadata"]["name"] == "controllers"
    }
    assert policies.keys() == {KUEUE_NAMESPACE, JOBSET_NAMESPACE}
    for policy in policies.values():
        assert (policy["podSelector"], policy["policyTypes"]) == ({}, ["Ingress"])
        assert {port["protocol"] for rule in policy["ingress"] for port in rule["ports"]} == {"TCP"}
    if "observability" in stacks_of(case):
        (release,) = synthesis.resources(case, "observability", "helm_release").values()
        collectors = json.loads(release["values"][0])["collectorNamespace"]
        assert reached(policies[KUEUE_NAMESPACE], collectors) == {9443, 8082, 8443}
    assert reached(policies[KUEUE_NAMESPACE], "tpu-training") == {9443, 8082}
    assert reached(policies[JOBSET_NAMESPACE], "tpu-training") == {9443}


@pytest.mark.parametrize("case", CASES)
def test_what_the_charts_roles_allow_too_much_is_refused(case: str, synthesis: Synthesis) -> None:
    """In which way, tests/cluster has: no part of a job outside of the teams, and of webhooks only certificates."""
    objects = [item["manifest"] for item in synthesis.resources(case, "platform", "kubernetes_manifest").values()]
    by_name = {(item["kind"], item["metadata"]["name"]): item["spec"] for item in objects}
    covered = set()
    for name in ("controllers-work-for-teams", "controllers-keep-their-webhooks"):
        policy = by_name["ValidatingAdmissionPolicy", name]
        (condition,) = policy["matchConditions"]
        assert all(f"'{account}'" in condition["expression"] for account in ACCOUNTS)
        assert policy["failurePolicy"] == "Fail"
        binding = by_name["ValidatingAdmissionPolicyBinding", name]
        assert (binding["policyName"], binding["validationActions"]) == (name, ["Deny"])
        covered |= {kind for rule in policy["matchConstraints"]["resourceRules"] for kind in rule["resources"]}
        assert all(
            rule["operations"] == ["CREATE", "UPDATE", "DELETE"] for rule in policy["matchConstraints"]["resourceRules"]
        )
    # What JobSet 0.12.0 and Kueue 0.19.2 may write of these groups (templates/rbac/role.yaml of their charts).
    assert covered == {
        *("pods", "podtemplates", "services", "persistentvolumeclaims", "jobs"),
        *("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
    }
    teams = by_name["ValidatingAdmissionPolicyBinding", "controllers-work-for-teams"]["matchResources"]
    assert teams["namespaceSelector"]["matchExpressions"] == [{"key": "tpuenv/team", "operator": "DoesNotExist"}]


HARDENED = [
    ("anonymous_authentication_config", {"mode": "LIMITED"}),
    (
        "rbac_binding_config",
        {
            "enable_insecure_binding_system_unauthenticated": False,
            "enable_insecure_binding_system_authenticated": False,
        },
    ),
    ("service_external_ips_config", {"enabled": False}),
    ("security_posture_config", {"mode": "BASIC"}),
    ("logging_config", {"enable_components": ["SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER"]}),
]


@pytest.mark.parametrize(("setting", "value"), HARDENED)
@pytest.mark.parametrize("case", ["default", "autopilot"])
def test_nothing_of_the_cluster_is_left_open_by_default(
    case: str, setting: str, value: Values, synthesis: Synthesis
) -> None:
    cluster = synthesis.resources(case, "cluster", "google_container_cluster")["cluster"]
    assert cluster[setting] == value


def test_the_kubelets_open_port_is_closed_on_every_node(synthesis: Synthesis) -> None:
    standard, autopilot = (
        synthesis.resources(case, "cluster", "google_container_cluster")["cluster"] for case in ("default", "autopilot")
    )
    closed = ("insecure_kubelet_readonly_port_enabled", "FALSE")
    assert closed in standard["node_pool_defaults"]["node_config_defaults"].items()
    assert closed in autopilot["node_pool_auto_config"]["node_kubelet_config"].items()


@pytest.mark.parametrize("case", STANDARD)
def test_every_node_boots_signed_software_and_says_so(case: str, synthesis: Synthesis) -> None:
    for stack in ("cluster", "tpu-node-pools"):
        for pool in synthesis.resources(case, stack, "google_container_node_pool").values():
            assert pool["node_config"]["shielded_instance_config"] == {
                "enable_secure_boot": True,
                "enable_integrity_monitoring": True,
            }
            # With it the provider would switch off the limits of cores.
            assert "kubelet_config" not in pool["node_config"]
