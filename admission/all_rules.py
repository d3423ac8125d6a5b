"""Every rule that a manifest alone is held against, in the order of the answer."""

from __future__ import annotations

from collections.abc import Iterator

from admission import boundary
from admission.api_server import containers, jobs, metadata, pods
from admission.gke import autopilot as gke_autopilot
from admission.jobset import webhook
from admission.kuberay import addon
from admission.kuberay import clusters as ray_clusters
from admission.kuberay import jobs as ray_jobs
from admission.kueue import topology, webhooks
from admission.result import Reason
from admission.rule import Rule
from admission.workload import Workload

RULES: tuple[Rule, ...] = tuple(
    rule
    for book in (
        metadata.BOOK,
        webhooks.BOOK,
        topology.BOOK,
        webhook.BOOK,
        jobs.BOOK,
        ray_clusters.BOOK,
        ray_jobs.BOOK,
        addon.BOOK,
        pods.BOOK,
        containers.BOOK,
        gke_autopilot.BOOK,
        boundary.BOOK,
    )
    for rule in book.rules
)


def refusals(workload: Workload, *, autopilot: bool, within: boundary.Boundary) -> Iterator[Reason]:
    """Every reason for which the workload would not be created, or never start; with `autopilot` on such a cluster."""
    for rule in RULES:
        if autopilot or rule not in gke_autopilot.BOOK.rules:
            yield from boundary.within(within, rule).reasons(workload)
