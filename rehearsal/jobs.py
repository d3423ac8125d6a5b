"""Submit a job to a played cluster as kubectl would, and tell where it is admitted and placed."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from environment.admission.cluster import read_cluster
from rehearsal.cloud import Cloud
from rehearsal.kubernetes import server
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.controllers import explain
from rehearsal.kubernetes.nodes import nodes
from rehearsal.kubernetes.resources import ALL
from rehearsal.report import counted
from rehearsal.world import World

_TPU = "google.com/tpu"


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """What became of a job. `lines` are for people: the verdict, the flavors, the node pools."""

    admitted: bool
    lines: list[str]
    pods_without_node: int = 0


def submit(world: World, cluster: str, manifest: Path) -> Submitted:
    """Create the object in `manifest` through the API server of `cluster` (its full name)."""
    body = yaml.safe_load(manifest.read_text())
    api = Api(world.cloud, cluster)
    explanation = explain(api, body)
    made = _create(world, cluster, body)
    if isinstance(made, str):
        return Submitted(admitted=False, lines=[*explanation.lines(), f"refused: {made}"])
    workload = next(
        item
        for item in api.everything()
        if item["kind"] == "Workload" and item["metadata"]["ownerReferences"][0]["name"] == made["metadata"]["name"]
    )
    assigned = workload["status"].get("admission", {}).get("podSetAssignments", [])
    lines = [f"created {body['kind']} {made['metadata']['namespace']}/{made['metadata']['name']}"]
    without_node = 0
    for item in assigned:
        places, left = _places(api, item)
        without_node += left
        lines.append(f"admitted: {item['name']}, {counted(item['count'], 'pod')}, on {places}")
    return Submitted(admitted=bool(assigned), lines=[*explanation.lines(), *lines], pods_without_node=without_node)


def quotas_off(cloud: Cloud, cluster: str) -> list[str]:
    """Flavors whose TPU quotas, of all ClusterQueues together, are not the chips of the nodes that they select."""
    seen = read_cluster(Api(cloud, cluster).everything())
    found = []
    for flavor in seen.flavors.values():
        quota = sum(seen.quota(queue, (flavor.name, _TPU)).nominal for queue in seen.cluster_queues)
        selected = [node for node in nodes(cloud, cluster) if flavor.labels.items() <= node.labels.items()]
        chips = sum(node.count * node.chips for node in selected)
        if chips != quota:
            found.append(f"flavor {flavor.name}: the quotas are {quota} chips, the nodes have {chips}")
    return found


def _create(world: World, cluster: str, body: dict[str, Any]) -> Any:
    """The object as created, or the API server's message."""
    kind = next(item for item in ALL if (item.api_version, item.kind) == (body["apiVersion"], body["kind"]))
    root = "api" if "/" not in kind.api_version else "apis"
    namespace = body["metadata"]["namespace"]
    path = f"{server.PREFIX}{cluster}/{root}/{kind.api_version}/namespaces/{namespace}/{kind.plural}"
    request = urllib.request.Request(
        world.address + path,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy leads to this machine
    try:
        with direct.open(request, timeout=30) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        return json.load(error).get("message", str(error))


def _places(api: Api, assignment: dict[str, Any]) -> tuple[str, int]:
    """The node pools that carry the flavors given to a pod set, a slice taking one whole; and the pods left over."""
    flavors = set(assignment["flavors"].values())
    labels: dict[str, str] = {}
    for item in api.everything():
        if item["kind"] == "ResourceFlavor" and item["metadata"]["name"] in flavors:
            labels |= item.get("spec", {}).get("nodeLabels", {})
    left = int(assignment["count"])
    places = []
    for node in nodes(api.cloud, api.cluster):
        if left > 0 and labels.items() <= node.labels.items():
            taken = min(left, node.count)
            left -= taken
            chips = f" x {counted(node.chips, 'chip')}" if node.chips else ""
            places.append(f"node pool {node.pool} in {node.zone} ({counted(taken, 'host')}{chips})")
    if left > 0:
        places.append(f"no node: {counted(left, 'pod')}")
    return ", ".join(places), left
