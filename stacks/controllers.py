"""What Kueue and JobSet may do, what may run in their namespaces, and who reaches it."""

from __future__ import annotations

from collections.abc import Sequence

from cdktf_cdktf_provider_kubernetes.namespace_v1 import NamespaceV1, NamespaceV1Metadata, NamespaceV1Timeouts
from constructs import Construct

from environment.names import JOBSET_NAMESPACE, KUEUE_NAMESPACE
from stacks.owned import owned, owned_policy
from vocabulary.keys import TEAM_LABEL

# Where the collectors of managed Prometheus run, with the service account `collector`; the second is Autopilot's.
# https://cloud.google.com/kubernetes-engine/docs/tutorials/kueue-cohort
COLLECTORS, COLLECTORS_OF_AUTOPILOT = "gmp-system", "gke-gmp-system"

WEBHOOKS = 9443
# An API that the control plane serves by asking Kueue. While it does not answer, no namespace can be deleted.
# https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/
VISIBILITY = 8082
METRICS = 8443

# Pods that can do nothing to their node. Those of both charts comply, and those of the gate and the drains.
# https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
RESTRICTED = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/enforce-version": "v1.34",
}

ACCOUNTS = (
    f"system:serviceaccount:{JOBSET_NAMESPACE}:jobset-controller",
    f"system:serviceaccount:{KUEUE_NAMESPACE}:kueue-controller-manager",
)

# A webhook that reads or changes something else, or asks another program.
_SAME_WEBHOOK = " && ".join(
    f"before.{field} == after.{field}"
    for field in (
        *("name", "rules", "clientConfig.?service", "clientConfig.?url", "?namespaceSelector", "?objectSelector"),
        *("?matchConditions", "?failurePolicy"),
    )
)


def confine_controllers(scope: Construct) -> None:
    """The charts' roles reach every namespace, and JobSet's every webhook (JobSet 0.12.0 templates/rbac/role.yaml), and
    no value makes them smaller. A token that got away would create pods with any service account of kube-system.

    Unlike webhooks, policies are asked about configurations of webhooks too (tried with Kubernetes 1.34.1).
    """
    _policy(
        scope,
        "controllers-work-for-teams",
        resources=[("", ["pods", "podtemplates", "services", "persistentvolumeclaims"]), ("batch", ["jobs"])],
        expression="false",
        message="Kueue and JobSet change jobs and their parts in namespaces of teams, and nowhere else",
        where={"namespaceSelector": {"matchExpressions": [{"key": TEAM_LABEL, "operator": "DoesNotExist"}]}},
    )
    _policy(
        scope,
        "controllers-keep-their-webhooks",
        resources=[
            ("admissionregistration.k8s.io", ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"])
        ],
        expression="request.operation == 'UPDATE'"
        f" && object.metadata.name.startsWith(request.userInfo.username == '{ACCOUNTS[0]}' ? 'jobset-' : 'kueue-')"
        " && object.webhooks.size() == oldObject.webhooks.size()"
        f" && object.webhooks.all(after, oldObject.webhooks.exists(before, {_SAME_WEBHOOK}))",
        message="Kueue and JobSet renew the certificates of their own webhooks, and change nothing else of any webhook",
    )


def _policy(
    scope: Construct,
    name: str,
    *,
    resources: Sequence[tuple[str, list[str]]],
    expression: str,
    message: str,
    where: dict[str, object] | None = None,
) -> None:
    """A policy for the controllers' accounts."""
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": kinds}
        for group, kinds in resources
    ]
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": "controllers", "expression": f"request.userInfo.username in {[*ACCOUNTS]}"}],
        "validations": [{"expression": expression, "message": message}],
    }
    owned_policy(scope, name, spec, where=where)


def controller_namespace(scope: Construct, name: str) -> NamespaceV1:
    """It is there before the controller's release and goes after it, with what the controller has left."""
    namespace = NamespaceV1(
        scope,
        name,
        metadata=NamespaceV1Metadata(name=name, labels=RESTRICTED),
        timeouts=NamespaceV1Timeouts(delete="15m"),
    )
    ingress = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "controllers", "namespace": name},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": _INGRESS[name]},
    }
    owned(scope, f"{name}-ingress", ingress, depends_on=[namespace])
    return namespace


def _tcp(*ports: int) -> list[dict[str, object]]:
    return [{"protocol": "TCP", "port": port} for port in ports]


_OF_COLLECTORS = {
    "namespaceSelector": {
        "matchExpressions": [
            {
                "key": "kubernetes.io/metadata.name",
                "operator": "In",
                "values": [COLLECTORS, COLLECTORS_OF_AUTOPILOT],
            }
        ]
    }
}
# The control plane comes through agents, whose addresses GKE chooses: what it calls is open to every pod. A webhook's
# answer changes nothing, and Kueue's API asks for credentials. The kubelet's probes are always let in.
_INGRESS = {
    JOBSET_NAMESPACE: [{"ports": _tcp(WEBHOOKS)}],
    KUEUE_NAMESPACE: [{"ports": _tcp(WEBHOOKS, VISIBILITY)}, {"from": [_OF_COLLECTORS], "ports": _tcp(METRICS)}],
}
