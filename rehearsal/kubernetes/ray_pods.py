"""The pods of a RayCluster and the submitter of a RayJob, as KubeRay 1.7.0 makes them.

ray-operator/controllers/ray: common/pod.go (names and labels), rayjob_controller.go and common/job.go (the submitter).
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Mapping

from rehearsal.kubernetes.batch_pods import pod_status, pods_of_batch_job, suffix
from rehearsal.kubernetes.objects import Object
from vocabulary.keys import (
    RAY_CLUSTER_LABEL,
    RAY_GROUP_LABEL,
    RAY_HOST_LABEL,
    RAY_NODE_LABEL,
    RAY_NODE_TYPE_LABEL,
    RAY_ORIGIN_KIND_LABEL,
    RAY_ORIGIN_LABEL,
    RAY_REPLICA_LABEL,
)

_LONGEST_START = 50  # of a pod's name: PodName


def submitter(job: Object, nodes: Mapping[str, list[str]], end: str) -> Iterator[Object]:
    """The pod that submits the program of a RayJob, once its RayCluster runs; it stays when that goes."""
    if (job.get("status") or {}).get("jobDeploymentStatus") not in ("Running", "Complete", "Failed"):
        return
    head = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    image = head["containers"][0].get("image", "")
    pod = {"restartPolicy": "Never", "containers": [{"name": "ray-job-submitter", "image": image}]}
    spec = {"template": job["spec"].get("submitterPodTemplate") or {"spec": pod}}
    labels = {RAY_ORIGIN_LABEL: job["metadata"]["name"], RAY_ORIGIN_KIND_LABEL: "RayJob"}
    names = nodes.get("submitter", [])
    yield from pods_of_batch_job(job["metadata"]["name"], job, spec, labels, names, end)


def heads_and_workers(cluster: Object, nodes: Mapping[str, list[str]], end: str) -> Iterator[Object]:
    """A head, and of each worker group a pod a host."""
    name = cluster["metadata"]["name"]
    head = cluster["spec"]["headGroupSpec"]["template"]
    of_head = {RAY_NODE_TYPE_LABEL: "head", RAY_GROUP_LABEL: "headgroup"}
    yield _ray_pod(cluster, f"{name}-head", head, of_head, nodes.get("head", []), end)
    for group in cluster["spec"].get("workerGroupSpecs") or []:
        names = nodes.get(group["groupName"], [])
        hosts = int(group.get("numOfHosts", 1))
        for number in range(int(group.get("replicas", 0)) * hosts):
            replica, host = divmod(number, hosts)
            labels = {
                RAY_NODE_TYPE_LABEL: "worker",
                RAY_GROUP_LABEL: group["groupName"],
                RAY_REPLICA_LABEL: str(replica),
                **({RAY_HOST_LABEL: str(host)} if hosts > 1 else {}),
            }
            start = f"{name}-{group['groupName']}"[:_LONGEST_START] + "-worker"
            yield _ray_pod(cluster, start, group["template"], labels, names[number : number + 1], end)


def _ray_pod(
    cluster: Object, start: str, template: Object, labels: dict[str, str], nodes: list[str], end: str
) -> Object:
    metadata, of_template = cluster["metadata"], template.get("metadata") or {}
    seed = f"{metadata.get('uid', '')}/{start}/{sorted(labels.items())}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **copy.deepcopy(of_template),
            "name": f"{start}-{suffix(seed, 0)}",
            "namespace": metadata["namespace"],
            "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, seed)),
            "creationTimestamp": metadata.get("creationTimestamp"),
            "labels": {
                **(of_template.get("labels") or {}),
                RAY_NODE_LABEL: "yes",
                RAY_CLUSTER_LABEL: metadata["name"],
                **labels,
            },
            "ownerReferences": [
                {
                    "apiVersion": cluster["apiVersion"],
                    "kind": "RayCluster",
                    "name": metadata["name"],
                    "uid": metadata.get("uid", ""),
                    "controller": True,
                }
            ],
        },
        "spec": {**copy.deepcopy(template["spec"]), **({"nodeName": nodes[0]} if nodes else {})},
        "status": pod_status(template["spec"], end, has_node=bool(nodes)),
    }
