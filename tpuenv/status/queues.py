"""What each team's queue has: jobs that wait and are admitted; of each pool group, the quota and what is borrowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from environment.fleet.model import PoolGroup
from tpuenv.kubernetes.objects import Object, condition_of, name_of, status_of
from vocabulary.keys import TPU
from vocabulary.printable import shortened
from vocabulary.quantity import parse
from vocabulary.stop_policy import HOLD


@dataclass(frozen=True, kw_only=True)
class Quota:
    """Of one pool group, in slices: what is the team's own, what its jobs use, and how much of that is borrowed."""

    group: str
    own: float
    used: float
    borrowed: float


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A team's ClusterQueue. `stopped` is why it takes no jobs; "" if it does."""

    team: str
    pending: int
    admitted: int
    stopped: str
    quotas: tuple[Quota, ...]


def queue_of(queue: Object, groups: Mapping[str, PoolGroup]) -> Queue:
    """Of Kueue 0.19's ClusterQueue: spec.resourceGroups, and status.flavorsUsage, which has the borrowed part too."""
    status, active = status_of(queue), condition_of(queue, "Active")
    is_stopped = active.get("status") == "False"
    stopped = str(active.get("message") or active.get("reason") or "stopped") if is_stopped else ""
    if (queue.get("spec") or {}).get("stopPolicy") == HOLD:
        stopped = "on hold: no job starts until a deploy without HOLD_QUEUES=true"
    own = {
        str(flavor.get("name")): _chips(flavor.get("resources"), "nominalQuota")
        for group in (queue.get("spec") or {}).get("resourceGroups") or []
        for flavor in group.get("flavors") or []
    }
    usage = {str(item.get("name")): item.get("resources") for item in status.get("flavorsUsage") or []}
    quotas = []
    for name, group in groups.items():
        if name not in own:
            continue
        chips, used = group.slice.chips, _chips(usage.get(name), "total")
        quotas.append(
            Quota(
                group=name,
                own=own[name] / chips,
                used=used / chips,
                borrowed=max(used - own[name], _chips(usage.get(name), "borrowed"), 0) / chips,
            )
        )
    return Queue(
        team=name_of(queue),
        pending=int(status.get("pendingWorkloads") or 0),
        admitted=int(status.get("admittedWorkloads") or 0),
        stopped=shortened(" ".join(stopped.split()), longest=200),
        quotas=tuple(quotas),
    )


def _chips(resources: Iterable[Object] | None, field: str) -> float:
    """Of a list of resources, the number in this field of that of the chips."""
    values = [item.get(field) for item in resources or [] if item.get("name") == TPU]
    return float(parse(values[0])) if values and values[0] is not None else 0.0
