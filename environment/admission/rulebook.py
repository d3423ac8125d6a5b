"""Every rule that a manifest alone is held against, in the order of the answer."""

from __future__ import annotations

from collections.abc import Iterator

from environment.admission import (
    api_server_containers,
    api_server_jobs,
    api_server_metadata,
    api_server_pods,
    jobset_webhook,
    kuberay_clusters,
    kuberay_jobs,
    kueue_topology,
    kueue_webhooks,
)
from environment.admission.manifest import Workload
from environment.admission.result import Reason
from environment.admission.rules import Rule

RULES: tuple[Rule, ...] = tuple(
    rule
    for book in (
        api_server_metadata.BOOK,
        kueue_webhooks.BOOK,
        kueue_topology.BOOK,
        jobset_webhook.BOOK,
        api_server_jobs.BOOK,
        kuberay_clusters.BOOK,
        kuberay_jobs.BOOK,
        api_server_pods.BOOK,
        api_server_containers.BOOK,
    )
    for rule in book.rules
)


def refusals(workload: Workload) -> Iterator[Reason]:
    """Everything for which the workload would not be created, or nothing would be made of it."""
    for rule in RULES:
        yield from rule.reasons(workload)
