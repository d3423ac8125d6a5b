"""Nodes that KWOK keeps alive: the hosts of an environment, with the labels and taints that GKE would give them."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager

from environment import Environment
from environment.kubernetes.nodes import node_objects
from tests.cluster.api import ApiServer, Object
from vocabulary.keys import TPU

_LONGEST_START_SECONDS = 20
_RESOURCES = {"cpu": "180", "memory": "700Gi", "ephemeral-storage": "100Gi", "pods": "110"}


def hosts(environment: Environment) -> Iterator[Object]:
    """A Node of each host of the fleet, one of the CPU pool and one of the system pool."""
    groups = {pool: group for group in environment.groups for pool in group.node_pools}
    for node in node_objects(environment):
        pool = node["metadata"]["name"]
        slice_ = groups[pool].slice if pool in groups else None
        resources = _RESOURCES | ({TPU: str(slice_.chips_per_host)} if slice_ else {})
        for number in range(slice_.hosts if slice_ else 1):
            host = copy.deepcopy(node)
            host["metadata"]["name"] = name = f"{pool}-host-{number}"
            host["metadata"]["labels"]["kubernetes.io/hostname"] = name
            host["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
            host["status"] = {"capacity": resources, "allocatable": resources}
            yield host


@contextmanager
def running(api: ApiServer, environment: Environment) -> Iterator[bool]:
    """Whether they got ready: a cluster without KWOK gives no sign of them."""
    made = list(hosts(environment))
    names = {node["metadata"]["name"] for node in made}
    try:
        for node in made:
            api.create(node)
        deadline = time.monotonic() + _LONGEST_START_SECONDS
        while names - _ready(api) and time.monotonic() < deadline:
            time.sleep(0.2)
        yield not names - _ready(api)
    finally:
        for node in made:
            api.delete(node)


def _ready(api: ApiServer) -> set[str]:
    return {
        node["metadata"]["name"]
        for node in api.list("Node")
        if not any(taint["key"].startswith("node.kubernetes.io/") for taint in node["spec"].get("taints", []))
        for condition in node.get("status", {}).get("conditions", [])
        if (condition["type"], condition["status"]) == ("Ready", "True")
    }
