"""What a manifest asks of Kueue besides quota: an existing Workload, a gate, fewer pods."""

from __future__ import annotations

from collections.abc import Iterator

from admission.cluster import Cluster, ClusterQueue
from admission.kueue.webhooks import is_elastic, whole_number
from admission.result import Reason, never, waits
from admission.workload import Workload
from vocabulary.keys import GATED_BY_ANNOTATION, MIN_PARALLELISM_ANNOTATION, POOL_GROUP_LABEL, PREBUILT


def way_reasons(cluster: Cluster, workload: Workload) -> Iterator[Reason]:
    """Why quota is not all that the workload waits for."""
    # pkg/controller/jobframework/utils.go, PrebuiltWorkloadNameFor: the annotation comes first.
    prebuilt = workload.annotations.get(PREBUILT) or workload.labels.get(PREBUILT)
    if prebuilt and (workload.namespace, prebuilt) not in cluster.workloads:
        yield never(
            "no-prebuilt-workload",
            PREBUILT,
            f"Kueue creates no Workload for it and waits for '{prebuilt}', which is not among the manifests",
            "remove it, or create that Workload first",
        )
    gates = workload.annotations.get(GATED_BY_ANNOTATION, "").strip()
    if gates:
        yield waits(
            "admission-gate",
            GATED_BY_ANNOTATION,
            f"Kueue does not admit it until somebody removes the gates {gates}",
        )


def fewest_pods(workload: Workload) -> int | None:
    """The least that a Job takes of its pods; None where it takes all or nothing."""
    least = whole_number(workload.annotations.get(MIN_PARALLELISM_ANNOTATION, "")) or 0
    if workload.kind != "Job" or is_elastic(workload) or not 0 < least < workload.pod_sets[0].count:
        return None
    return least


def foreign_groups(cluster: Cluster, queue: ClusterQueue, selected: str) -> Reason | None:
    """A pool group that there is, but not for this team."""
    groups = [cluster.flavors[name].labels.get(POOL_GROUP_LABEL, "") for name in queue.flavors]
    there = {flavor.labels.get(POOL_GROUP_LABEL) for flavor in cluster.flavors.values()}
    if not selected or selected in groups or selected not in there:
        return None
    own = [group for group in groups if group]
    return never(
        "pool-group-of-others",
        f"nodeSelector.{POOL_GROUP_LABEL}",
        f"pool group '{selected}' is not among those that team {queue.name} may use: {', '.join(own) or 'none'}",
        f"use {' or '.join(own)}, or have it added to the team's pools" if own else "have it added to the team's pools",
    )
