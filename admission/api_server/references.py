"""What pods name that must exist in the cluster: service accounts; and what a priority class is worth."""

from __future__ import annotations

from collections.abc import Iterator

from admission.cluster import Cluster
from admission.result import Reason, never
from admission.workload import Workload


def account_reasons(cluster: Cluster, workload: Workload) -> Iterator[Reason]:
    """Service accounts that the namespace does not have, where it is known which it has."""
    known = cluster.service_accounts.get(workload.namespace)
    for pods in workload.pod_sets:
        named = pods.spec.get("serviceAccountName")
        account = named.text() or pods.spec.get("serviceAccount").text()
        if known and account and account not in known:
            own = sorted({*known} - {"default"}) or sorted(known)  # `default` may use nothing in Google Cloud
            yield never(
                "unknown-service-account",
                named.path,
                f"namespace {workload.namespace} has no service account '{account}', so no pod is created",
                f"use {' or '.join(own)}",
            )


def pod_priority(cluster: Cluster, workload: Workload) -> int:
    """The priority that Kueue takes from the first pods that name a class, where the workload has no label for it."""
    names = (pods.spec.get("priorityClassName").text() for pods in workload.pod_sets)
    return cluster.pod_priorities.get(next(filter(None, names), ""), 0)
