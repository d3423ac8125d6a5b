"""On which nodes the pods of admitted jobs run: in the order of admission, each pod with chips on a host of its own.

An Autopilot cluster has the nodes that these pods ask for, and no others.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from rehearsal.kubernetes import warden
from rehearsal.kubernetes.nodes import Nodes, autopilot_nodes, nodes
from rehearsal.kubernetes.objects import Object, Objects
from vocabulary.keys import TPU
from vocabulary.quantity import parse


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where the pods of one pod set of a Workload run.

    `hosts` are node pools, with the numbers of their nodes that are used; `without_node` counts the pods left over.
    """

    workload: Object
    assignment: Object  # of the Workload's status.admission.podSetAssignments
    hosts: tuple[tuple[Nodes, range], ...]
    without_node: int


def placements(api: Objects) -> Iterator[Placement]:
    """Of every pod set of every admitted job. Pods tolerate what their flavors do, and pods with chips TPU nodes: GKE
    gives them that.
    """
    flavors = {item["metadata"]["name"]: item.get("spec", {}) for item in api.of_kind("ResourceFlavor")}
    taken: Counter[str] = Counter()
    pools, autopilot, numbers = nodes(api.cloud, api.cluster), warden.is_watched(api), itertools.count(1)
    for workload in [item for item in api.of_kind("Workload") if not is_finished(item)]:
        for assignment in workload.get("status", {}).get("admission", {}).get("podSetAssignments", []):
            given = [flavors.get(name, {}) for name in assignment["flavors"].values()]
            labels = {key: value for flavor in given for key, value in flavor.get("nodeLabels", {}).items()}
            tolerated = {taint["key"] for flavor in given for taint in flavor.get("tolerations", [])}
            tolerated |= {TPU} & assignment["flavors"].keys()
            left, hosts = int(assignment["count"]), []
            if autopilot:
                chips = int(parse(str(assignment.get("resourceUsage", {}).get(TPU, 0)))) // max(1, left)
                pools = autopilot_nodes(labels, left, chips, numbers)
            # Its pods have the labels of a flavor that is gone, which no node has any more.
            gone = not flavors.keys() >= {*assignment["flavors"].values()}
            for node in () if gone else pools:
                number = min(left, node.count - taken[node.pool])
                if number > 0 and labels.items() <= node.labels.items() and tolerated.issuperset(node.taints):
                    left -= number
                    hosts.append((node, range(taken[node.pool], taken[node.pool] + number)))
                    taken[node.pool] += number if node.chips else 0
            yield Placement(workload=workload, assignment=assignment, hosts=tuple(hosts), without_node=max(left, 0))


def all_nodes(api: Objects) -> list[Nodes]:
    """Those of the node pools; on Autopilot those that the pods of admitted jobs have."""
    if not warden.is_watched(api):
        return nodes(api.cloud, api.cluster)
    return [node for placed in placements(api) for node, _ in placed.hosts]


def is_finished(workload: Object) -> bool:
    """Whether its job has ended: it uses no quota then, though it keeps its admission."""
    conditions = workload.get("status", {}).get("conditions", [])
    return any((condition["type"], condition["status"]) == ("Finished", "True") for condition in conditions)
