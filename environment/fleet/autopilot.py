"""What of a fleet an Autopilot cluster cannot have, or is not known to."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from environment.fleet.model import LONGEST_RUN_HOURS, CapacityMode, Fleet, PoolGroup
from environment.fleet.node_selector import node_selector
from environment.problems import Problem

_MODE = "CLUSTER_MODE"


def autopilot_problems(fleet: Fleet) -> Iterator[Problem]:
    """Groups whose capacity or hosts Google documents for node pools only, and groups that pods cannot tell apart."""
    for group in fleet.groups:
        yield from _without_pools(fleet, group)
    for one, other in itertools.combinations(fleet.groups, 2):
        if not _told_apart(one, other):
            yield Problem(
                keys=(fleet.key("tpu_pools", other.name), fleet.key("tpu_pools", one.name), _MODE),
                message=f"is the same accelerator, topology and zone as '{one.name}', and with CLUSTER_MODE=autopilot "
                "Kueue could give the pods of the one the quota of the other; make them one group, or give it another "
                "type or zone",
            )


def _told_apart(one: PoolGroup, other: PoolGroup) -> bool:
    """Whether a label of both has two values: others Kueue passes over (pkg/scheduler/flavorassigner, 0.19.2), so that
    pods which select spot would get the flavor of on-demand slices as well.
    """
    labels, others = (node_selector(group, autopilot=True) for group in (one, other))
    return any(labels[key] != others[key] for key in labels.keys() & others.keys())


def _without_pools(fleet: Fleet, group: PoolGroup) -> Iterator[Problem]:
    if group.capacity is CapacityMode.QUEUED:
        yield Problem(
            keys=(fleet.key("tpu_pools", group.name, "capacity"), _MODE),
            message="'queued' is known for node pools only, not for TPUs with CLUSTER_MODE=autopilot; use flex-start",
        )
    elif group.max_run_seconds not in (None, LONGEST_RUN_HOURS * 3600):
        yield Problem(
            keys=(fleet.key("tpu_pools", group.name, "max_run_hours"), _MODE),
            message="has no documented meaning with CLUSTER_MODE=autopilot, where Google takes flex-start machines "
            f"back after {LONGEST_RUN_HOURS} hours; remove it",
        )
    if group.slice.needs_workload_policy:
        yield Problem(
            keys=(fleet.key("tpu_pools", group.name, "type"), _MODE),
            message=f"'{group.slice.tpu_type}' has several hosts, which tpu7x places by a policy that is documented "
            "for node pools only; with CLUSTER_MODE=autopilot use one host, or another generation",
        )
