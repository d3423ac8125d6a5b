"""What must exist in the cluster before a pod can be created: service accounts and priority classes."""

from __future__ import annotations

from collections.abc import Iterator

from admission.cluster import Cluster
from admission.result import Reason, never
from admission.workload import Workload
from vocabulary.keys import PRIORITY_LABEL, TEAM_ACCOUNT

# Kubernetes creates these (pkg/apis/scheduling/types.go). GKE lets pods use them in namespaces with a quota for them,
# and gives that to kube-system alone: elsewhere "insufficient quota to match these scopes" (openservicemesh/osm, 4408).
_CRITICAL = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def account_reasons(cluster: Cluster, workload: Workload) -> Iterator[Reason]:
    """Service accounts that the namespace does not have, where it is known which it has."""
    known = cluster.service_accounts.get(workload.namespace)
    for pods in workload.pod_sets:
        named = pods.spec.get("serviceAccountName")
        account = named.text() or pods.spec.get("serviceAccount").text()
        if known and account and account not in known:
            use = f"use {TEAM_ACCOUNT}, which reads and writes the team's bucket" if TEAM_ACCOUNT in known else ""
            yield never(
                "unknown-service-account",
                named.path,
                f"namespace {workload.namespace} has no service account '{account}', so no pod is created",
                use or f"use {' or '.join(sorted(known))}",
            )


def priority_class_reasons(cluster: Cluster, workload: Workload) -> Iterator[Reason]:
    """Priority classes that pods name and cannot have. Kueue's own, by the label, are another thing."""
    for pods in workload.pod_sets:
        named = pods.spec.get("priorityClassName")
        name = named.text()
        if name in _CRITICAL:
            yield never(
                "critical-priority-class",
                named.path,
                f"GKE lets only pods in kube-system use '{name}', so no pod is created",
                f"remove it; Kueue's priority is the label {PRIORITY_LABEL}",
            )
        elif name and name not in cluster.pod_priorities:
            yield never(
                "unknown-priority-class",
                named.path,
                f"no PriorityClass '{name}' comes with the environment, and without it Kueue creates no Workload, or "
                "no pod is created",
                f"remove it, or create the class first; Kueue's priority is the label {PRIORITY_LABEL}",
            )


def pod_priority(cluster: Cluster, workload: Workload) -> int:
    """The priority that Kueue takes from the first pods that name a class, where the workload has no label for it."""
    names = (pods.spec.get("priorityClassName").text() for pods in workload.pod_sets)
    return {**_CRITICAL, **cluster.pod_priorities}.get(next(filter(None, names), ""), 0)
