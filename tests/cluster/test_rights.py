"""What members, their pods and the pipeline's plans may do on a real API server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from environment import Environment
from tests.cluster.api import Object
from tests.cluster.deployed import MEMBERS, Deployed

pytestmark = pytest.mark.cluster

ELSEWHERE = ("kube-system", "kueue-system", "default")
# What no role should ever have from us, and what a role with `*` would give.
NEVER = (
    *("pods/ephemeralcontainers", "pods/proxy", "pods/binding", "pods/eviction", "pods/status", "nodes/proxy"),
    *("services/proxy", "services/status", "serviceaccounts/token", "secrets/status"),
    *("jobs.batch/status", "jobsets.jobset.x-k8s.io/status", "rayclusters.ray.io/status", "rayjobs.ray.io/status"),
    *("jobs.batch/finalizers", "workloads.kueue.x-k8s.io/status", "localqueues.kueue.x-k8s.io/status"),
    *("cronjobs.batch", "deployments.apps", "daemonsets.apps", "statefulsets.apps", "rayservices.ray.io"),
    *("networkpolicies.networking.k8s.io", "ingresses.networking.k8s.io", "resourcequotas", "limitranges"),
    *("persistentvolumes", "persistentvolumeclaims", "endpoints", "endpointslices.discovery.k8s.io"),
    *("rolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io"),
    *("validatingadmissionpolicies.admissionregistration.k8s.io", "certificatesigningrequests.certificates.k8s.io"),
)
VERBS = ("create", "update", "patch", "delete", "deletecollection")
POWERS = (
    ("impersonate", "users"),
    ("impersonate", "serviceaccounts"),
    ("bind", "clusterroles.rbac.authorization.k8s.io"),
)


def _who(environment: Environment) -> dict[str, tuple[str, str]]:
    """The user and the group of each."""
    names = environment.names
    account = f"system:serviceaccount:research:{names.team_account}"
    return {
        "a member": (MEMBERS["research"], ""),
        "a member of a group": ("bob@example.com", "research@example.com"),
        "pods of the team": (account, "system:serviceaccounts:research"),
        "plans of the pipeline": (names.account_email(names.plan_account), ""),
    }


def test_rights_are_what_was_reviewed(deployed: Deployed, described: Environment, snapshot: SnapshotAssertion) -> None:
    """Without what everybody may."""
    nobody = replace(deployed.api, user="mallory@example.com")
    rights: dict[str, dict[str, list[str]]] = {}
    for who, (user, group) in _who(described).items():
        asks = replace(deployed.api, user=user, group=group)
        for namespace in ("research", "serving", *ELSEWHERE):
            own = {*_lines(asks.rules(namespace))} - {*_lines(nobody.rules(namespace))}
            rights.setdefault(who, {})[namespace] = sorted(own)
    assert rights == snapshot(extension_class=JSONSnapshotExtension)


def _lines(rules: Sequence[Object]) -> Iterator[str]:
    for rule in rules:
        for group in rule.get("apiGroups", [""]):
            for resource in rule.get("resources", []):
                names = f" {', '.join(rule['resourceNames'])}" if rule.get("resourceNames") else ""
                yield f"{resource}{'.' if group else ''}{group}{names}: {', '.join(sorted(rule['verbs']))}"


def test_the_authorizer_says_so_of_what_leads_on(deployed: Deployed, described: Environment) -> None:
    for user, group in _who(described).values():
        for namespace in ("research", "serving", "kube-system", ""):
            for verb, resource in (*((verb, resource) for resource in NEVER for verb in VERBS), *POWERS):
                groups = [group] if group else []
                said = deployed.api.may(verb, resource, user=user, groups=groups, namespace=namespace)
                assert not said, f"{user} may {verb} {resource} in {namespace!r}"
