"""Pods without chips: they run in the CPU pool, whatever the quota.

The quota of cores and memory counts TPU hosts too, so that pods with chips may ask for both. So Kueue admits more pods
without chips than the CPU pool has room for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from admission.cluster import ZERO, Cluster
from admission.gke.slices import tolerates_tpu_nodes
from admission.result import PodSetPlan, amount, asked
from admission.workload import Workload
from vocabulary.keys import TPU

_WAITS = (
    "the pods beyond that wait, and when waitForPodsReady's timeout passes, Kueue stops the job and puts it back into "
    "the queue"
)


def cpu_pool_notes(cluster: Cluster, workload: Workload, plans: Sequence[PodSetPlan]) -> Iterator[str]:
    """What these pods would wait for although Kueue admits them."""
    bound = [
        plan
        for pods, plan in zip(workload.pod_sets, plans, strict=True)
        if not plan.requests.get(TPU) and not tolerates_tpu_nodes(pods)
    ]
    pools = [cluster.flavors[plan.flavor].pool for plan in bound if plan.flavor]
    for resource, has in pools[0].items() if pools else ():
        asks = _sum(plan.requests.get(resource, ZERO) for plan in bound)
        in_use = _sum(item.without_chips.get(resource, ZERO) for item in cluster.admitted)
        free = max(ZERO, has - in_use)
        names = ", ".join(plan.name for plan in bound if plan.requests.get(resource))
        if asks > has:
            yield (
                f"{names}: {asked(resource, asks)} together, and the CPU pool has {amount(resource, has)} for jobs, "
                f"at its largest: {_WAITS}; ask for less, or raise CPU_MAX_NODES"
            )
        elif asks > free:
            yield (
                f"{names}: {asked(resource, asks)} together, and the CPU pool has {amount(resource, free)} free now: "
                f"{_WAITS}, unless other jobs end before"
            )


def _sum(numbers: Iterator[Fraction]) -> Fraction:
    return sum(numbers, ZERO)
