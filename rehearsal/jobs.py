"""Submits objects to a fake cluster as kubectl would, and says where a job is admitted and placed."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from admission import NotAWorkload, Verdict
from admission.cluster import read_cluster
from admission.workload import KINDS
from rehearsal.cloud import Cloud
from rehearsal.google.gke import is_autopilot
from rehearsal.google.network import CLUSTER
from rehearsal.inventory import counted
from rehearsal.kubernetes import server
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.controllers import explain
from rehearsal.kubernetes.kuberay import owner_of
from rehearsal.kubernetes.nodes import Nodes, nodes
from rehearsal.kubernetes.objects import chips_of
from rehearsal.kubernetes.placement import placements
from rehearsal.kubernetes.pulls import refused
from rehearsal.kubernetes.resources import ALL, POD
from rehearsal.world import World
from vocabulary.keys import JOB_LABEL, JOBSET_LABEL, RAY_CLUSTER_LABEL, TPU


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """What became of an object. `lines` are for people: where a job was admitted, or why not and what to change.

    `waits_for` are the codes of the reasons for which it waits, empty where it does not, or not only, wait.
    `not_started`: why pods that have a node do not start, a line each. `chips`: the TPU chips that it asks for.
    """

    admitted: bool
    lines: list[str]
    waits_for: frozenset[str] = frozenset()
    pods_without_node: int = 0
    not_started: tuple[str, ...] = ()
    chips: int = 0
    created: tuple[dict[str, Any], ...] = ()  # the object, as the API server returned it


# What a controller writes to the status of a job whose program has ended well.
_SUCCEEDED: dict[str, dict[str, Any]] = {
    "Job": {"conditions": [{"type": "Complete", "status": "True"}]},
    "JobSet": {"conditions": [{"type": "Completed", "status": "True"}]},
    "RayJob": {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"},
}


class _NotCreated(Exception):
    """The API server refuses the object; the text is its message."""

    def __init__(self, message: str, *, exists: bool = False) -> None:
        super().__init__(message)
        self.exists = exists


def submit(world: World, cluster: str, body: object) -> Submitted:
    """Creates an object through the API server of `cluster` (its full name). What is no job counts as admitted."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(metadata, dict) or not isinstance(body.get("kind"), str):
        return Submitted(admitted=False, lines=["is not a Kubernetes object: it needs a kind and metadata"])
    api, kind = Api(world.cloud, cluster), body["kind"]
    try:
        explanation = explain(api, body) if kind in KINDS else None
        created = _create(world, cluster, body)
    except NotAWorkload as error:
        return Submitted(admitted=False, lines=[str(error)])
    except _NotCreated as error:
        if error.exists and kind not in KINDS:  # of another team or pool group, or of the environment
            return Submitted(admitted=True, lines=[f"exists: {kind} {metadata['name']}"])
        return Submitted(admitted=False, lines=[f"refused: {error}"])
    if explanation is None:
        return Submitted(admitted=True, lines=[f"created: {kind} {created['metadata']['name']}"], created=(created,))
    chips = sum(int(plan.requests.get(TPU, 0)) for plan in explanation.pod_sets)
    workload = _workload_of(api, created)
    assigned = workload.get("status", {}).get("admission", {}).get("podSetAssignments", [])
    if not assigned:
        waits = explanation.verdict is Verdict.WAITS
        lines = [
            f"{explanation.verdict.value}: {reason.what}{f'; {reason.fix}' if reason.fix else ''}"
            for reason in explanation.reasons
        ]
        return Submitted(
            admitted=explanation.verdict is Verdict.ADMITTED,  # on a RayCluster that exists: nothing for Kueue to do
            lines=lines or list(explanation.notes),
            waits_for=frozenset(reason.code for reason in explanation.reasons) if waits else frozenset(),
            chips=chips,
            created=(created,),
        )
    lines, without_node = [], 0
    for item, places, left in _places(api, workload):
        without_node += left
        lines.append(f"admitted: {item['name']}, {counted(item['count'], 'pod')}, on {', '.join(places)}")
    for (flavor, resource), number in explanation.borrows.items():
        if resource == TPU:
            lines.append(f"borrows {counted(int(number), 'chip')} of {flavor} from other teams")
    return Submitted(
        admitted=True,
        lines=lines,
        pods_without_node=without_node,
        not_started=refused(world.cloud, cluster, body),
        chips=chips,
        created=(created,),
    )


def end(world: World, cluster: str, objects: Iterable[dict[str, Any]]) -> int:
    """Ends the jobs that `submit` created as their programs would; on how many hosts of slices their pods remain.

    A RayCluster goes on until it is deleted, and does not count.
    """
    api = Api(world.cloud, cluster)
    names = set()
    for body in objects:
        if body["kind"] in _SUCCEEDED:
            namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
            resource = api.resource(body["apiVersion"], body["kind"])
            api.patch(resource, namespace, name, {"status": _SUCCEEDED[body["kind"]]})
            names.add((namespace, name))
    ray_jobs = {
        (item["metadata"]["namespace"], item["metadata"]["name"]): owner_of(item) for item in api.of_kind("RayCluster")
    }
    pods = [pod["metadata"] for pod in api.all(POD) if pod["status"]["phase"] == "Running" and chips_of(pod["spec"])]
    return sum((pod["namespace"], _job_of(pod, ray_jobs)) in names for pod in pods)


def _job_of(pod: dict[str, Any], ray_jobs: dict[tuple[str, str], str]) -> str:
    """The name of the JobSet, Job or RayJob of a pod with this metadata; `ray_jobs` are those of the RayClusters."""
    labels = pod.get("labels") or {}
    ray_cluster = (pod["namespace"], labels.get(RAY_CLUSTER_LABEL, ""))
    return str(labels.get(JOBSET_LABEL) or labels.get(JOB_LABEL) or ray_jobs.get(ray_cluster, ""))


def delete(world: World, cluster: str, objects: Iterable[dict[str, Any]]) -> None:
    """Deletes what `submit` created."""
    api = Api(world.cloud, cluster)
    for body in objects:
        metadata = body["metadata"]
        api.delete(api.resource(body["apiVersion"], body["kind"]), metadata.get("namespace", ""), metadata["name"])


def _workload_of(api: Api, job: dict[str, Any]) -> dict[str, Any]:
    """The Workload that Kueue made of a job, or an empty mapping."""
    for item in api.of_kind("Workload"):
        if item["metadata"].get("namespace") == job["metadata"].get("namespace"):
            owner = item["metadata"]["ownerReferences"][0]
            if (owner["kind"], owner["name"]) == (job["kind"], job["metadata"]["name"]):
                return item
    return {}


def quotas_off(cloud: Cloud, cluster: str) -> list[str]:
    """Flavors whose TPU quotas, of all ClusterQueues together, are not the chips of the nodes that they select.

    None on Autopilot, where there are no nodes without pods.
    """
    if is_autopilot(cloud.get(CLUSTER, cluster)):
        return []
    seen = read_cluster(Api(cloud, cluster).everything())
    differences = []
    with_chips = {name for queue in seen.cluster_queues.values() for name, resource in queue.quotas if resource == TPU}
    for flavor in (seen.flavors[name] for name in sorted(with_chips)):
        quota = sum(seen.quota(queue, (flavor.name, TPU)).nominal for queue in seen.cluster_queues)
        selected = [node for node in nodes(cloud, cluster) if flavor.labels.items() <= node.labels.items()]
        chips = sum(node.count * node.chips for node in selected)
        if chips != quota:
            differences.append(f"flavor {flavor.name}: the quotas are {quota} chips, the nodes have {chips}")
    return differences


def _create(world: World, cluster: str, body: dict[str, Any]) -> Any:
    """The object as created. Raises _NotCreated."""
    version, metadata = body.get("apiVersion"), body["metadata"]
    kind = next((item for item in ALL if (item.api_version, item.kind) == (version, body["kind"])), None)
    if kind is None:
        raise _NotCreated(f'no matches for kind "{body["kind"]}" in version "{version}"')
    namespace = str(metadata.get("namespace") or "")
    if kind.namespaced and not namespace:
        raise _NotCreated("it names no namespace; write namespace: ${NAMESPACE} in its metadata")
    root = "apis" if "/" in kind.api_version else "api"
    place = f"namespaces/{quote(namespace, safe='')}/" if kind.namespaced else ""
    request = urllib.request.Request(
        f"{world.address}{server.PREFIX}{cluster}/{root}/{kind.api_version}/{place}{kind.plural}",
        data=json.dumps(body, default=str).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy leads to this machine
    try:
        with direct.open(request, timeout=30) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        raise _NotCreated(json.load(error).get("message", str(error)), exists=error.code == 409) from None


def _places(api: Api, job: Any) -> Iterator[tuple[dict[str, Any], list[str], int]]:
    """Of each pod set of an admitted job (its Workload), the node pools of its pods, and the pods left over."""
    for placed in placements(api):
        if placed.workload["metadata"] != job["metadata"]:
            continue
        places = []
        for node, hosts in placed.hosts:
            places.append(f"node pool {node.pool} in {node.zone} ({_hosts(node, hosts)})")
        if placed.without_node:
            places.append(f"no node: {counted(placed.without_node, 'pod')}")
        yield placed.assignment, places, placed.without_node


def _hosts(node: Nodes, numbers: range) -> str:
    """ "hosts 0 to 3, 4 chips each"; of nodes without chips, which pods share, nothing but how many there are."""
    if not node.chips:
        return counted(len(numbers), "host")
    if len(numbers) == 1:
        return f"host {numbers[0]}, {counted(node.chips, 'chip')}"
    return f"hosts {numbers[0]} to {numbers[-1]}, {counted(node.chips, 'chip')} each"
