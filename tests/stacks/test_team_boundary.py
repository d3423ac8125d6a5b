"""What stands around a team in the cluster: its namespace, policies, quota, and who may call whom."""

from __future__ import annotations

from typing import Any

import pytest

from environment.kubernetes.queues import queue_objects
from environment.kubernetes.team_objects import namespace_labels
from stacks.policies import policies
from tests.fleets import with_fleet
from tests.network_policies import Peer, allowed
from tests.synthesis import CASES, Synthesis
from vocabulary.team_rules import RULES

CASE = "three-teams-four-groups"
LIMITS = ("LimitRange", "NetworkPolicy", "ResourceQuota")
SERVES = {"tpuenv/serves": "true"}

RESEARCH, OTHER = "research", "serving"
POD, HEAD, SERVER = Peer(namespace=RESEARCH), Peer(namespace=RESEARCH), Peer(namespace=RESEARCH, labels=SERVES)
METADATA = Peer(address="169.254.169.254")
INTERNET, VPC, NODE = Peer(address="142.250.1.1"), Peer(address="10.200.0.9"), Peer(address="10.0.0.9")

FLOWS = [
    ("hosts of a slice: JAX", POD, POD, 8476, True),
    ("slices among themselves: megascale", POD, POD, 8080, True),
    ("a worker finds Ray's head", POD, HEAD, 6379, True),
    ("a worker reaches any port of another", POD, POD, 10002, True),
    ("another team's Ray dashboard", Peer(namespace=OTHER), HEAD, 8265, False),
    ("another team's Ray client", Peer(namespace=OTHER), HEAD, 10001, False),
    ("another team's JAX coordinator", POD, Peer(namespace=OTHER), 8476, False),
    ("another team's model server, by its pod", POD, Peer(namespace=OTHER, labels=SERVES), 8000, False),
    ("a pod of no team", Peer(namespace="default"), HEAD, 8265, False),
    ("Managed Prometheus reads Ray's metrics", Peer(namespace="gmp-system"), HEAD, 8080, True),
    ("and calls nothing else", Peer(namespace="gmp-system"), HEAD, 8265, False),
    ("Ray's operator asks for a job's status", Peer(namespace="gke-managed-ray-operator"), HEAD, 8265, True),
    ("and starts no client", Peer(namespace="gke-managed-ray-operator"), HEAD, 10001, False),
    ("names: kube-dns", POD, Peer(namespace="kube-system"), 53, True),
    ("names: Cloud DNS", POD, METADATA, 53, True),
    ("names: the node's cache", POD, Peer(address="169.254.20.10"), 53, True),
    ("tokens of the team's account", POD, METADATA, 80, True),
    ("tokens, older dataplanes", POD, Peer(address="169.254.169.252"), 988, True),
    ("another port of the metadata server", POD, METADATA, 8080, False),
    ("the team's bucket, packages", POD, INTERNET, 443, True),
    ("machines of the network around", POD, VPC, 22, False),
    ("a kubelet", POD, NODE, 10250, False),
    ("Kueue", POD, Peer(namespace="kueue-system"), 9443, False),
    ("other pods of the cluster's own", POD, Peer(namespace="kube-system"), 443, False),
    ("a model server, from the network around", VPC, SERVER, 8000, True),
    ("what does not serve, from the network around", VPC, HEAD, 8265, False),
    ("a model server, from the internet", INTERNET, SERVER, 8000, False),
    ("a model server, from the address of another team's pod", Peer(address="10.4.0.9"), SERVER, 8000, False),
]

# With EGRESS=google, of the team of tests/cases/air-gapped.env.
TEAM = Peer(namespace="tpu-training")
TO_GOOGLE_ALONE = [
    ("the team's bucket, by private.googleapis.com", TEAM, Peer(address="199.36.153.9"), 443, True),
    ("the team's bucket, by the direct path", TEAM, Peer(address="34.126.1.1"), 443, True),
    ("another port there", TEAM, Peer(address="199.36.153.9"), 22, False),
    ("restricted.googleapis.com, to which no name leads", TEAM, Peer(address="199.36.153.4"), 443, False),
    ("packages, and buckets by public addresses", TEAM, INTERNET, 443, False),
    ("hosts of a slice, with EGRESS=google", TEAM, TEAM, 8476, True),
    ("names, with EGRESS=google", TEAM, Peer(namespace="kube-system"), 53, True),
    ("names of a server elsewhere", TEAM, INTERNET, 53, False),
    ("tokens of the team's account, with EGRESS=google", TEAM, METADATA, 80, True),
    ("machines of the network around, with EGRESS=google", TEAM, VPC, 443, False),
]
ROWS = [(CASE, *row) for row in FLOWS] + [("air-gapped", *row) for row in TO_GOOGLE_ALONE]


@pytest.mark.parametrize(
    ("case", "flow", "source", "target", "port", "let_through"), ROWS, ids=[row[1] for row in ROWS]
)
def test_a_flow_is_let_through_or_not(
    case: str, flow: str, source: Peer, target: Peer, port: int, let_through: bool, synthesis: Synthesis
) -> None:
    found = [item for item in synthesis.kubernetes_objects(case) if item["kind"] == "NetworkPolicy"]
    found = [item for item in found if item["metadata"]["namespace"] in (RESEARCH, OTHER, TEAM.namespace)]
    protocols = ("TCP", "UDP") if port == 53 else ("TCP",)
    assert [allowed(found, source, target, port, protocol) for protocol in protocols] == [let_through] * len(protocols)


def test_with_egress_google_every_name_of_googles_leads_to_where_pods_are_let(synthesis: Synthesis) -> None:
    records = synthesis.resources("air-gapped", "foundation", "google_dns_record_set").values()
    found = {item["name"]: (item["type"], item["rrdatas"]) for item in records}
    addresses = ["199.36.153.8", "199.36.153.9", "199.36.153.10", "199.36.153.11"]
    for domain in ("googleapis.com.", "pkg.dev.", "gcr.io."):
        assert (found[domain], found[f"*.{domain}"]) == (("A", addresses), ("CNAME", [domain]))
    zones = synthesis.resources("air-gapped", "foundation", "google_dns_managed_zone").values()
    assert {zone["visibility"] for zone in zones} == {"private"}
    assert "google_dns_managed_zone" not in synthesis.stack("default", "foundation")["resource"]
    assert "service-dns.googleapis.com" not in synthesis.resources("default", "foundation", "google_project_service")


@pytest.mark.parametrize("case", CASES)
def test_the_namespace_of_every_team_is_limited_in_each_way(case: str, synthesis: Synthesis) -> None:
    objects = synthesis.kubernetes_objects(case)
    for team in synthesis.environment(case).teams:
        kinds = [item["kind"] for item in objects if item["metadata"].get("namespace") == team.name]
        assert sorted(kind for kind in kinds if kind in LIMITS) == [
            "LimitRange",
            "NetworkPolicy",
            "NetworkPolicy",
            "ResourceQuota",
        ]
    for namespace in synthesis.resources(case, "platform", "kubernetes_namespace_v1").values():
        labels = namespace["metadata"]["labels"]
        if "tpuenv/team" in labels:
            assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
        assert "pod-security.kubernetes.io/warn" not in labels  # it prints a paragraph for every honest job


def _is_of_teams(manifest: dict[str, Any]) -> bool:
    return "Admission" in manifest["kind"] and manifest["metadata"]["name"] in policies()


def test_no_team_comes_before_what_is_refused_there(synthesis: Synthesis) -> None:
    stack = synthesis.stack(CASE, "platform")["resource"]
    manifests = stack["kubernetes_manifest"].items()
    bound = {f"kubernetes_manifest.{id_}" for id_, item in manifests if _is_of_teams(item["manifest"])}
    assert len(bound) == 2 * len(policies())
    for namespace in stack["kubernetes_namespace_v1"].values():
        if "tpuenv/team" in namespace["metadata"]["labels"]:
            assert bound <= {*namespace["depends_on"]}


def test_the_chips_of_a_team_end_where_its_queue_ends() -> None:
    environment = with_fleet(
        "tpu_pools: {a: {type: v6e-16, slices: 4}, b: {type: v6e-8, slices: 2}}\n"
        "teams: {x: {share: 1, pools: [a], borrowing: 1}, y: {share: 1}}\n"
    )
    quotas = [item for item in queue_objects(environment) if item["kind"] == "ResourceQuota"]
    most = {item["metadata"]["namespace"]: item["spec"]["hard"]["requests.google.com/tpu"] for item in quotas}
    assert most == {"x": "48", "y": "80"}  # 2 slices and one that it borrows; all


def test_only_a_team_that_is_given_host_access_has_it() -> None:
    environment = with_fleet(
        "tpu_pools: {a: {type: v6e-16, slices: 2}, b: {type: v6e-16, slices: 2}}\n"
        "teams: {x: {pools: [a], host_access: true}, y: {pools: [b]}}\n"
    )
    x, y = (namespace_labels(team) for team in environment.teams)
    assert (x["tpuenv/host-access"], x["pod-security.kubernetes.io/enforce"]) == ("true", "privileged")
    assert ("tpuenv/host-access" in y, y["pod-security.kubernetes.io/enforce"]) == (False, "baseline")
    assert environment.warnings == ()


def test_every_rule_of_the_table_is_in_a_policy_and_every_rule_of_pods_in_two() -> None:
    fixes = [item["message"] for spec in policies().values() for item in spec["validations"]]
    for rule in RULES:
        count = sum(message.endswith(f"{rule.why}: {rule.advice}") for message in fixes)
        assert count >= (2 if rule.of.name == "POD" else 1), rule.code
    assert all("failurePolicy" in spec and spec["failurePolicy"] == "Fail" for spec in policies().values())


def test_controllers_are_exempt_by_right_and_only_from_what_members_submit() -> None:
    conditions = {name: spec.get("matchConditions", []) for name, spec in policies().items()}
    for name in ("jobs-of-members", "deletions-of-members"):
        (condition,) = conditions.pop(name)
        assert "authorizer" in condition["expression"] and "request.userInfo" not in condition["expression"]
    assert [*conditions.values()] == [[], [], []]
