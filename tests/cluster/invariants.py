"""What holds of a cluster of teams at every moment, whatever their members try."""

from __future__ import annotations

import time
from collections.abc import Iterator

from environment import Environment
from tests.cluster.api import ApiServer, Object
from vocabulary.keys import POOL_GROUP_LABEL, TPU

# Kueue's counts follow what it admits: what is broken for longer is broken.
_MOMENT_SECONDS = 10


def what_is_broken(api: ApiServer, environment: Environment) -> list[str]:
    """In sentences, of what stays so for a moment."""
    deadline = time.monotonic() + _MOMENT_SECONDS
    while (broken := [*_broken(api, environment)]) and time.monotonic() < deadline:
        time.sleep(0.2)
    return broken


def running_pods(api: ApiServer, namespace: str) -> list[Object]:
    """Those that have a node and have not ended."""
    return [
        pod
        for pod in api.list("Pod", namespace)
        if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Succeeded", "Failed")
    ]


def _broken(api: ApiServer, environment: Environment) -> Iterator[str]:
    group_of = {
        node["metadata"]["name"]: node["metadata"].get("labels", {}).get(POOL_GROUP_LABEL, "")
        for node in api.list("Node")
    }
    of_tpus = {group.name for group in environment.groups}
    for team in environment.teams:
        running = running_pods(api, team.name)
        chips, counted = sum(map(_chips, running)), _counted(api, team.name)
        if chips > counted:
            yield f"{chips} chips of {team.name} run, and its ClusterQueue counts {counted}"
        for pod in running:
            node = pod["spec"]["nodeName"]
            group = group_of.get(node, "")
            if group in of_tpus - {*team.pools}:
                yield f"{pod['metadata']['name']} of {team.name} runs on {node}, of {group}, which it may not use"
            if group in of_tpus and not _chips(pod):
                yield f"{pod['metadata']['name']} of {team.name} runs on {node} without chips"
        for service in api.list("Service", team.name):
            annotations = service["metadata"].get("annotations", {})
            internal = annotations.get("networking.gke.io/load-balancer-type") == "Internal"
            if service["spec"]["type"] != "ClusterIP" and not internal:
                yield f"Service {service['metadata']['name']} of {team.name} is {service['spec']['type']}"
        for ingress in api.list("Ingress", team.name):
            yield f"Ingress {ingress['metadata']['name']} of {team.name} is there"


def _chips(pod: Object) -> int:
    containers = pod["spec"]["containers"]
    return sum(int(container.get("resources", {}).get("limits", {}).get(TPU, 0)) for container in containers)


def _counted(api: ApiServer, queue: str) -> int:
    status = (api.get("ClusterQueue", queue) or {}).get("status", {})
    return sum(
        int(resource["total"])
        for flavor in status.get("flavorsUsage", [])
        for resource in flavor["resources"]
        if resource["name"] == TPU
    )
