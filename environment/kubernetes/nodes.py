"""The nodes of an environment as Kubernetes shows them: one of each node pool, with its labels and taints.

Facts: GKE, "Create and manage cluster and node pool labels", "Run fault-tolerant workloads at lower costs in Spot VMs",
"About TPU consumption with flex-start"; Kubernetes, "Well-Known Labels, Annotations and Taints".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from environment import Environment
from environment.cpu_machine_types import system_machine_type
from environment.fleet.model import CapacityMode, PoolGroup
from environment.fleet.node_selector import capacity_labels, node_selector
from environment.kubernetes.queues import taints_of
from vocabulary.keys import (
    CPU_GROUP,
    MACHINE_LABEL,
    POOL_GROUP_LABEL,
    POOL_LABEL,
    REGION_LABEL,
    SYSTEM_GROUP,
    SYSTEM_TAINT,
    ZONE_LABEL,
)


def node_objects(environment: Environment) -> tuple[dict[str, Any], ...]:
    """A Node of the CPU pool, of the system pool and of every TPU slice; GKE gives them more labels than these.

    Of Autopilot's nodes, which it makes as pods ask for them, a Node of every pool group.
    """
    settings = environment.settings
    if settings.autopilot:
        return tuple(_of_autopilot(group, settings.region) for group in environment.groups)
    return (
        _without_tpus(environment, environment.names.cpu_pool, CPU_GROUP, settings.cpu_machine_type),
        _without_tpus(
            environment,
            environment.names.system_pool,
            SYSTEM_GROUP,
            system_machine_type(settings.cpu_machine_type).name,
            [{"key": SYSTEM_TAINT, "value": "true", "effect": "NoSchedule"}],
        ),
        *(node for group in environment.groups for node in _slices(group, settings.region)),
    )


def _without_tpus(
    environment: Environment, pool: str, group: str, machine_type: str, taints: Sequence[dict[str, str]] = ()
) -> dict[str, Any]:
    place = _place(environment.settings.region, environment.settings.zone_of_cpu_nodes)
    labels = {POOL_LABEL: pool, POOL_GROUP_LABEL: group, MACHINE_LABEL: machine_type, **place}
    return _node(pool, labels, taints)


def _of_autopilot(group: PoolGroup, region: str) -> dict[str, Any]:
    return _node(group.name, _labels(group, region, autopilot=True), taints_of(group))


def _slices(group: PoolGroup, region: str) -> Iterator[dict[str, Any]]:
    reserved = group.capacity is CapacityMode.RESERVATION
    labels = {**_labels(group, region, autopilot=False), **({} if reserved else capacity_labels(group))}
    for pool in group.node_pools:
        yield _node(pool, {POOL_LABEL: pool, **labels}, taints_of(group))


def _labels(group: PoolGroup, region: str, *, autopilot: bool) -> dict[str, str]:
    labels = {MACHINE_LABEL: group.slice.machine_type.name, **_place(region, group.zone)}
    return {**labels, **node_selector(group, autopilot=autopilot)}


def _place(region: str, zone: str) -> dict[str, str]:
    return {REGION_LABEL: region, ZONE_LABEL: zone}


def _node(name: str, labels: dict[str, str], taints: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [dict(taint) for taint in taints]},
    }
