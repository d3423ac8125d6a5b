"""The nodes of a cluster: what its node pools are made of, with the labels and taints that GKE gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rehearsal.cloud import Cloud
from rehearsal.google.tpu import SHAPES, Shape, topology_of
from rehearsal.terraform.values import block_at, value_at
from vocabulary.keys import ACCELERATOR_LABEL, POOL_LABEL, SIMULATED_NODE_ANNOTATION, TOPOLOGY_LABEL, TPU, ZONE_LABEL

POOL = "google_container_node_pool"


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The nodes of one pool, all alike. `chips` are those of one node, 0 without TPUs.

    `count` is how many there are, or for a pool that scales from zero how many there will be.
    """

    pool: str
    count: int
    zone: str
    machine_type: str
    chips: int
    labels: dict[str, str]
    taints: list[str]


def node_name(cluster: str, pool: str, number: int) -> str:
    """The name of a node of the cluster with this full name."""
    return f"gke-{cluster.rpartition('/')[2]}-{pool}-{number}"


def node_objects(cluster: str, pools: Iterable[Nodes]) -> list[dict[str, Any]]:
    """The Nodes of these pools, each of them ready. They say that no program runs on them."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": node_name(cluster, pool.pool, number),
                "labels": {**pool.labels},
                "annotations": {SIMULATED_NODE_ANNOTATION: "fake"},
            },
            "spec": {"taints": [{"key": key, "effect": "NoSchedule"} for key in pool.taints]},
            "status": {
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                "allocatable": {TPU: str(pool.chips)} if pool.chips else {},
            },
        }
        for pool in pools
        for number in range(pool.count)
    ]


def nodes(cloud: Cloud, cluster: str) -> list[Nodes]:
    """Pool by pool, by name."""
    pools = []
    for item in sorted(cloud.find(POOL, prefix=f"{cluster}/nodePools/"), key=lambda item: item.name):
        config = block_at(item.attributes, "node_config")
        pool = item.name.rsplit("/", 1)[-1]
        machine = str(config.get("machine_type"))
        shape = SHAPES.get(machine)
        labels = {POOL_LABEL: pool, **(config.get("labels") or {})}
        if shape is not None:
            labels[ACCELERATOR_LABEL] = shape.accelerator
            labels[TOPOLOGY_LABEL] = topology_of(item.attributes) or shape.single_host
        taints = [*(config.get("taint") or []), *(config.get("effective_taints") or [])]
        pools.append(
            Nodes(
                pool=pool,
                count=int(
                    item.attributes.get("node_count") or value_at(item.attributes, "autoscaling.max_node_count") or 0
                ),
                zone=", ".join(item.attributes.get("node_locations") or []),
                machine_type=machine,
                chips=shape.chips_per_host if shape is not None else 0,
                labels=labels,
                taints=[str(taint["key"]) for taint in taints],
            )
        )
    return pools


def autopilot_nodes(labels: dict[str, str], count: int, chips: int, numbers: Iterator[int]) -> list[Nodes]:
    """The nodes that Autopilot makes for `count` pods of `chips` chips each that select these labels: with chips a node
    pool a slice. `numbers` numbers the pools. Empty where there are no such machines.
    """
    accelerator, topology = labels.get(ACCELERATOR_LABEL, ""), labels.get(TOPOLOGY_LABEL, "")
    machine, hosts, pools = "general", count, 1
    if chips:
        machine = next((name for name, shape in SHAPES.items() if _carries(shape, accelerator, topology, chips)), "")
        if not machine:
            return []
        hosts = SHAPES[machine].hosts(topology)
        pools = -(-count // hosts)
    return [
        Nodes(
            pool=f"nap-{machine}-{next(numbers)}",
            count=hosts,
            zone=labels.get(ZONE_LABEL, "any zone"),
            machine_type=machine,
            chips=chips,
            labels=labels,
            taints=[TPU] if chips else [],
        )
        for _ in range(pools)
    ]


def _carries(shape: Shape, accelerator: str, topology: str, chips: int) -> bool:
    fits = topology == shape.single_host or shape.allows(topology)
    return fits and (shape.accelerator, shape.chips_per_host) == (accelerator, chips)
