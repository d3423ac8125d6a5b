"""Why a queue of Kueue takes no jobs, by its spec.stopPolicy."""

from __future__ import annotations

HOLD = "Hold"  # the policy that HOLD_QUEUES=true sets


def stopped(policy: str) -> str:
    """What a queue with this policy is, which is not None. https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#stoppolicy"""
    return "is on hold" if policy == HOLD else f"is stopped ({policy})"
