"""Submit a job to a fake cluster as kubectl would, and tell where it is admitted and placed."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from admission import Verdict
from admission.cluster import read_cluster
from rehearsal.cloud import Cloud
from rehearsal.kubernetes import server
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.controllers import explain
from rehearsal.kubernetes.nodes import nodes
from rehearsal.kubernetes.pulls import refused
from rehearsal.kubernetes.resources import ALL
from rehearsal.report import counted
from rehearsal.world import World

_TPU = "google.com/tpu"


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """What became of a job. `lines` are for people: where it was admitted, or why not and what to change.

    `waits_for` are the codes of the reasons for which it waits, empty where it does not, or not only, wait.
    `not_started`: why pods that have a node do not start, a line each.
    """

    admitted: bool
    lines: list[str]
    waits_for: frozenset[str] = frozenset()
    pods_without_node: int = 0
    not_started: tuple[str, ...] = ()


def submit(world: World, cluster: str, manifest: Path) -> Submitted:
    """Create the object in `manifest` through the API server of `cluster` (its full name)."""
    body = yaml.safe_load(manifest.read_text())
    api = Api(world.cloud, cluster)
    explanation = explain(api, body)
    made = _create(world, cluster, body)
    if isinstance(made, str):
        return Submitted(admitted=False, lines=[f"refused: {made}"])
    workload = next(
        item
        for item in api.everything()
        if item["kind"] == "Workload" and item["metadata"]["ownerReferences"][0]["name"] == made["metadata"]["name"]
    )
    assigned = workload["status"].get("admission", {}).get("podSetAssignments", [])
    if not assigned:
        waits = explanation.verdict is Verdict.WAITS
        lines = [
            f"{explanation.verdict.value}: {reason.what}{f'; {reason.fix}' if reason.fix else ''}"
            for reason in explanation.reasons
        ]
        codes = frozenset(reason.code for reason in explanation.reasons) if waits else frozenset[str]()
        return Submitted(admitted=False, lines=lines, waits_for=codes)
    lines, without_node = [], 0
    for item, places, left in _places(api, workload):
        without_node += left
        lines.append(f"admitted: {item['name']}, {counted(item['count'], 'pod')}, on {', '.join(places)}")
    for (flavor, resource), number in explanation.borrows.items():
        if resource == _TPU:
            lines.append(f"borrows {counted(int(number), 'chip')} of {flavor} from other teams")
    return Submitted(
        admitted=True,
        lines=lines,
        pods_without_node=without_node,
        not_started=refused(world.cloud, cluster, body),
    )


def quotas_off(cloud: Cloud, cluster: str) -> list[str]:
    """Flavors whose TPU quotas, of all ClusterQueues together, are not the chips of the nodes that they select."""
    seen = read_cluster(Api(cloud, cluster).everything())
    found = []
    with_chips = {name for queue in seen.cluster_queues.values() for name, resource in queue.quotas if resource == _TPU}
    for flavor in (seen.flavors[name] for name in sorted(with_chips)):
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


def _places(api: Api, job: Any) -> Iterator[tuple[dict[str, Any], list[str], int]]:
    """Of each pod set of an admitted job (its Workload), the node pools that carry its flavors, and the pods left over.

    Jobs take TPU hosts in the order of their admission, each pod a whole one. Pods tolerate what their flavors do, and
    pods with chips TPU nodes: GKE gives them that.
    """
    flavors = {
        item["metadata"]["name"]: item.get("spec", {}) for item in api.everything() if item["kind"] == "ResourceFlavor"
    }
    taken: Counter[str] = Counter()
    for workload in [item for item in api.everything() if item["kind"] == "Workload"]:
        for assignment in workload.get("status", {}).get("admission", {}).get("podSetAssignments", []):
            given = [flavors[name] for name in assignment["flavors"].values()]
            labels = {key: value for each in given for key, value in each.get("nodeLabels", {}).items()}
            tolerated = {each["key"] for flavor in given for each in flavor.get("tolerations", [])}
            tolerated |= {_TPU} & assignment["flavors"].keys()
            left, places = int(assignment["count"]), []
            for node in nodes(api.cloud, api.cluster):
                hosts = min(left, node.count - taken[node.pool])
                if hosts > 0 and labels.items() <= node.labels.items() and tolerated.issuperset(node.taints):
                    left -= hosts
                    chips = f" x {counted(node.chips, 'chip')}" if node.chips else ""
                    places.append(f"node pool {node.pool} in {node.zone} ({counted(hosts, 'host')}{chips})")
                    taken[node.pool] += hosts if node.chips else 0
            if left > 0:
                places.append(f"no node: {counted(left, 'pod')}")
            if workload["metadata"] == job["metadata"]:
                yield assignment, places, left
