"""Submit a job to a played cluster as kubectl would, and tell where it is admitted and placed."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rehearsal.kubernetes import server
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.controllers import explain
from rehearsal.kubernetes.nodes import nodes
from rehearsal.kubernetes.resources import ALL
from rehearsal.report import counted
from rehearsal.world import World


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """What became of a job. `lines` are for people: the verdict, the flavors, the node pools."""

    admitted: bool
    lines: list[str]


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
    for item in assigned:
        lines.append(f"admitted: {item['name']}, {counted(item['count'], 'pod')}, on {_places(api, item)}")
    return Submitted(admitted=bool(assigned), lines=[*explanation.lines(), *lines])


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


def _places(api: Api, assignment: dict[str, Any]) -> str:
    """The node pools that carry the flavors given to a pod set; a slice takes one whole."""
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
    return ", ".join(places)
