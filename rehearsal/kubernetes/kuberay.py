"""KubeRay, as GKE's Ray add-on runs it: the RayCluster of a RayJob that Kueue has started, and the status of both.

The program of a RayJob runs from the moment its RayCluster is there; its end is written to its status with a patch.

KubeRay 1.7.0: ray-operator/controllers/ray/rayjob_controller.go; the add-on's webhook: ai-on-gke/kuberay-tpu-webhook,
main.go, validateRayCluster.
"""

from __future__ import annotations

import copy
import hashlib
import math
import uuid

from rehearsal.kubernetes.objects import Object, Objects, chips_of, full_name
from rehearsal.kubernetes.resources import RAY
from rehearsal.kubernetes.status import Status
from vocabulary.keys import RAY_ORIGIN_KIND_LABEL, RAY_ORIGIN_LABEL, TOPOLOGY_LABEL

_WEBHOOK = "raycluster-kuberay-tpu-webhook.ray-system.svc"
_CREATING = "Initializing"


def reconcile(api: Objects) -> None:
    """Every RayJob that is not suspended and has not ended has a RayCluster, and no other has."""
    ray_jobs = {full_name(item): item for item in api.of_kind("RayJob")}
    clusters = {}
    for item in api.of_kind("RayCluster"):
        if owner := owner_of(item):
            ray_job = ray_jobs.get(f"{item['metadata']['namespace']}/{owner}", {})
            if _runs(ray_job) and item["metadata"]["name"] == ray_job["status"].get("rayClusterName"):
                clusters[full_name(ray_job)] = item
            else:
                api.remove(item)
    for name, ray_job in ray_jobs.items():
        if _runs(ray_job) and name not in clusters:
            _start(api, ray_job)
        elif ray_job.get("spec", {}).get("suspend") and ray_job.get("status") and not end_of(ray_job):
            ray_job["status"] = {"jobDeploymentStatus": "Suspended"}
            api.store(ray_job)


def end_of(ray_job: Object) -> str:
    """The phase in which its submitter has ended, "Succeeded" or "Failed"; "" while it has not."""
    status = ray_job.get("status") or {}
    if status.get("jobDeploymentStatus") not in ("Complete", "Failed"):
        return ""
    return "Succeeded" if status.get("jobStatus") == "SUCCEEDED" else "Failed"


def owner_of(ray_cluster: Object) -> str:
    """The name of the RayJob that it belongs to; "" if it is a person's own."""
    owners = ray_cluster["metadata"].get("ownerReferences") or []
    return next((str(owner["name"]) for owner in owners if owner["kind"] == "RayJob"), "")


def review(ray_cluster: Object) -> None:
    """What the add-on's webhook asks of a new RayCluster. Raises Status."""
    for group in ray_cluster.get("spec", {}).get("workerGroupSpecs") or []:
        pod = group.get("template", {}).get("spec", {})
        chips = chips_of(pod)
        if not chips:
            continue
        topology = pod.get("nodeSelector", {}).get(TOPOLOGY_LABEL, "")
        if not topology:
            raise _denied("TPU topology not specified")
        sides = topology.split("x")
        for side in sides:
            if not side.isdecimal():
                raise _denied(f'strconv.Atoi: parsing "{side}": invalid syntax')
        hosts = max(math.prod(map(int, sides)) // chips, 1)
        if hosts != int(group.get("numOfHosts", 1)):
            raise _denied("Number of workers in worker group not equal to specified topology")


def _runs(ray_job: Object) -> bool:
    if not ray_job or "deletionTimestamp" in ray_job["metadata"]:
        return False
    return ray_job.get("spec", {}).get("suspend") is False and not end_of(ray_job)


def _start(api: Objects, ray_job: Object) -> None:
    """Its RayCluster gets its labels, and a name that no other has."""
    metadata = ray_job["metadata"]
    seed = f"{metadata.get('uid')}/{api.cloud.next('ray-cluster')}"
    name = f"{metadata['name']}-{hashlib.sha256(seed.encode()).hexdigest()[:5]}"
    cluster = {
        "apiVersion": RAY[0].api_version,
        "kind": "RayCluster",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, seed)),
            "creationTimestamp": metadata.get("creationTimestamp"),
            "labels": {
                **metadata.get("labels", {}),
                RAY_ORIGIN_LABEL: metadata["name"],
                RAY_ORIGIN_KIND_LABEL: "RayJob",
            },
            "ownerReferences": [
                {
                    "apiVersion": ray_job["apiVersion"],
                    "kind": "RayJob",
                    "name": metadata["name"],
                    "uid": metadata.get("uid", ""),
                    "controller": True,
                }
            ],
        },
        "spec": copy.deepcopy(ray_job["spec"].get("rayClusterSpec") or {}),
    }
    ray_job["status"] = {"jobDeploymentStatus": _CREATING, "rayClusterName": name}
    try:
        review(cluster)
    except Status as refused:
        ray_job["status"]["message"] = str(refused)
    else:
        ray_job["status"] |= {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "jobId": name}
        api.store(cluster)
    api.store(ray_job)


def _denied(words: str) -> Status:
    return Status(400, f'admission webhook "{_WEBHOOK}" denied the request: {words}', "BadRequest")
