"""The fleet in the words of xpk 1.16.0: how it names slices, and which of them its jobs can start on.

What xpk reads of a cluster is in its core/resources.py, core/scheduling.py and core/cluster.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from environment.fleet.model import CapacityMode, PoolGroup
from environment.tpu import Slice
from environment.tpu_catalogue import GENERATIONS

LOCAL_QUEUE = "multislice-queue"  # what its jobs name as their queue
NAMESPACE = "default"  # where it looks for the ConfigMaps of a cluster

_UNKNOWN = "UNKNOWN"  # one of its capacity types
_CAPACITY_TYPES = {
    CapacityMode.ON_DEMAND: "ON_DEMAND",
    CapacityMode.SPOT: "SPOT",
    CapacityMode.RESERVATION: "RESERVATION",
    CapacityMode.FLEX_START: "FLEX_START",
}


def device_type(slice_: Slice) -> str | None:
    """What xpk calls such a slice, such as "v6e-16"; None where its jobs cannot start on it.

    xpk takes hosts of 4 chips, or one host of 1 chip. Its jobs for several hosts of tpu7x select nodes by the name of a
    placement policy, which only xpk gives.
    """
    generation = GENERATIONS[slice_.generation]
    if slice_.chips_per_host != (1 if slice_.chips == 1 else 4) or slice_.needs_workload_policy:
        return None
    return f"{generation.type_name}-{slice_.chips * generation.counts_per_chip}"


def resources(groups: Iterable[PoolGroup]) -> dict[str, str]:
    """The most hosts that there can be, by device type: xpk refuses jobs that need more, or another type."""
    hosts: dict[str, int] = {}
    for group in groups:
        if type_ := device_type(group.slice):
            hosts[type_] = hosts.get(type_, 0) + group.hosts
    return {type_: str(number) for type_, number in hosts.items()}


def metadata(groups: Iterable[PoolGroup]) -> dict[str, str]:
    """The capacity type of all groups, if xpk has one for it. It has no version, with which xpk compares its own."""
    types = {_CAPACITY_TYPES.get(group.capacity, _UNKNOWN) for group in groups}
    return {"capacity_type": types.pop() if len(types) == 1 else _UNKNOWN}
