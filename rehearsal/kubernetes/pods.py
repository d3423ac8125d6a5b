"""The pods of jobs that run, as JobSet, the Job controller and a kubelet would have them, and their logs.

No program runs here: a pod with a node is Running until its job ends, and its log is one line that says so. What is
otherwise (an image that cannot be pulled, a container that failed) is written to a pod as its status, and the end of a
job to the status of the job, with a patch. The Jobs between a JobSet and its pods are left out.

Names and labels: jobset-sigs-k8s-io/jobset v0.12.0, pkg/controllers and api/jobset/v1alpha2 (keys);
https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
"""

from __future__ import annotations

import copy
import hashlib
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from rehearsal.kubernetes.objects import Object, Objects
from rehearsal.kubernetes.placement import placements
from rehearsal.kubernetes.status import Status
from vocabulary.keys import (
    COMPLETION_INDEX_LABEL,
    JOB_GLOBAL_INDEX_LABEL,
    JOB_INDEX_LABEL,
    JOB_LABEL,
    JOB_UID_LABEL,
    JOBSET_LABEL,
    REPLICATED_JOB_LABEL,
    REPLICATED_JOB_REPLICAS_LABEL,
    RESTART_ATTEMPT_LABEL,
)

LOG = "pod-log"  # the kind, in the cloud, of the log of a pod: a list of times and lines

NO_PROGRAM = "This is a rehearsal: the fake cluster runs no programs, so this is all that {name} logs."
NO_END = " The job runs until `tpuenv cancel {job}`."

_STARTED = datetime(2026, 1, 1, tzinfo=timezone.utc)
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # those of generated names: k8s.io/apimachinery/pkg/util/rand


def pods_of_jobs(api: Objects, namespace: str = "") -> list[Object]:
    """The pods of every JobSet and Job that is not suspended, in one namespace or in all."""
    nodes = _nodes_by_pod_set(api)
    pods: list[Object] = []
    for job in api.everything():
        if job["kind"] not in ("JobSet", "Job") or (namespace and job["metadata"].get("namespace") != namespace):
            continue
        if job.get("spec", {}).get("suspend") or "deletionTimestamp" in job["metadata"]:
            continue
        pods += _pods(job, nodes, end_of(job))
    return pods


def end_of(job: Object) -> str:
    """The phase in which the pods of a job have ended, "Succeeded" or "Failed"; "" while it has not."""
    phases = {"Complete": "Succeeded", "Completed": "Succeeded", "Failed": "Failed"}
    for condition in (job.get("status") or {}).get("conditions") or []:
        if condition.get("status") == "True" and condition.get("type") in phases:
            return phases[condition["type"]]
    return ""


def is_of_a_job(pod: Object) -> bool:
    """Whether a stored Pod is one that a job's controller has made, by its labels."""
    labels = pod["metadata"].get("labels") or {}
    return pod["kind"] == "Pod" and bool({JOBSET_LABEL, JOB_LABEL} & labels.keys())


def write_log(api: Objects, namespace: str, pod: str, lines: list[str]) -> None:
    """Adds lines, a second apart, to what a container of the pod has logged."""
    name = f"{api.cluster}|{namespace}|{pod}"
    with api.cloud.transaction():
        before = (api.cloud.get(LOG, name) or {"lines": []})["lines"]
        times = [_STARTED + timedelta(seconds=len(before) + number) for number in range(len(lines))]
        added = [[f"{time:%Y-%m-%dT%H:%M:%S}.000000001Z", line] for time, line in zip(times, lines, strict=True)]
        api.cloud.put(LOG, name, {"lines": [*before, *added]})


def log_of(api: Objects, pod: Object, *, timestamps: bool, since: str, tail: int | None) -> str:
    """The log of a pod's container so far. Status 400 while the container has not started.

    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#get-read-log-of-the-specified-pod
    """
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    if pod["status"].get("phase") == "Pending":
        container = pod["spec"]["containers"][0]["name"]
        raise Status(
            400, f'container "{container}" in pod "{name}" is waiting to start: ContainerCreating', "BadRequest"
        )
    stored = api.cloud.get(LOG, f"{api.cluster}|{namespace}|{name}")
    labels = pod["metadata"].get("labels") or {}
    job = labels.get(JOBSET_LABEL) or labels.get(JOB_LABEL)
    line = NO_PROGRAM.format(name=name) + (NO_END.format(job=job) if job else "")
    default = [[f"{_STARTED:%Y-%m-%dT%H:%M:%S}.000000001Z", line]]
    lines = [(time, line) for time, line in (stored["lines"] if stored else default) if time[:19] >= since[:19]]
    shown = lines if tail is None else lines[max(len(lines) - tail, 0) :]
    return "".join(f"{time} {line}\n" if timestamps else f"{line}\n" for time, line in shown)


def _nodes_by_pod_set(api: Objects) -> dict[tuple[str, str, str], list[str]]:
    """The names of the nodes of each pod set, pod after pod, by the job's kind, its full name, and the pod set's."""
    nodes: dict[tuple[str, str, str], list[str]] = {}
    for placed in placements(api):
        metadata = placed.workload["metadata"]
        owner = metadata["ownerReferences"][0]
        names = [
            f"gke-{api.cluster.rpartition('/')[2]}-{node.pool}-{number}"
            for node, numbers in placed.hosts
            for number in numbers
        ]
        key = owner["kind"], f"{metadata['namespace']}/{owner['name']}", placed.assignment["name"]
        nodes[key] = names
    return nodes


def _pods(job: Object, nodes: dict[tuple[str, str, str], list[str]], end: str) -> Iterator[Object]:
    full_name = f"{job['metadata']['namespace']}/{job['metadata']['name']}"
    if job["kind"] == "Job":
        names = nodes.get(("Job", full_name, "main"), [])
        yield from _pods_of_job(job["metadata"]["name"], job, job["spec"], {}, names, end)
        return
    restarts = int((job.get("status") or {}).get("restarts") or 0)
    every = 0
    for replicated in job["spec"].get("replicatedJobs", []):
        names = nodes.get(("JobSet", full_name, replicated["name"]), [])
        spec = replicated["template"]["spec"]
        size = int(spec.get("parallelism", 1))
        for index in range(int(replicated.get("replicas", 1))):
            labels = {
                JOBSET_LABEL: job["metadata"]["name"],
                REPLICATED_JOB_LABEL: replicated["name"],
                REPLICATED_JOB_REPLICAS_LABEL: str(replicated.get("replicas", 1)),
                JOB_INDEX_LABEL: str(index),
                JOB_GLOBAL_INDEX_LABEL: str(every),
                RESTART_ATTEMPT_LABEL: str(restarts),
            }
            every += 1
            name = f"{job['metadata']['name']}-{replicated['name']}-{index}"
            yield from _pods_of_job(name, job, spec, labels, names[index * size : (index + 1) * size], end)


def _pods_of_job(
    name: str, owner: Object, spec: Object, labels: dict[str, str], nodes: list[str], end: str
) -> Iterator[Object]:
    """JobSet makes its Jobs Indexed; a Job of its own says whether it is."""
    template = spec["template"]
    indexed = owner["kind"] == "JobSet" or spec.get("completionMode") == "Indexed"
    attempt = labels.get(RESTART_ATTEMPT_LABEL, "0")
    job_uid = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{owner['metadata'].get('uid', '')}/{name}/{attempt}"))
    for index in range(int(spec.get("parallelism", 1))):
        of_template = copy.deepcopy(template.get("metadata") or {})
        numbered = {COMPLETION_INDEX_LABEL: str(index)} if indexed else {}
        node = nodes[index] if index < len(nodes) else ""
        pod_name = f"{name}-{index}-{_suffix(job_uid, index)}" if indexed else f"{name}-{_suffix(job_uid, index)}"
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **of_template,
                "name": pod_name,
                "namespace": owner["metadata"]["namespace"],
                "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{job_uid}/{index}")),
                "creationTimestamp": owner["metadata"].get("creationTimestamp"),
                "labels": {
                    **(of_template.get("labels") or {}),
                    **labels,
                    **numbered,
                    JOB_LABEL: name,
                    "job-name": name,
                    JOB_UID_LABEL: job_uid,
                },
                "annotations": {**(of_template.get("annotations") or {}), **numbered},
                "ownerReferences": [
                    {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job_uid, "controller": True}
                ],
            },
            "spec": {**copy.deepcopy(template["spec"]), **({"nodeName": node} if node else {})},
            "status": _status(template["spec"], end, has_node=bool(node)),
        }


def _status(spec: Object, end: str, *, has_node: bool) -> Object:
    if not has_node and not end:
        message = "0/0 nodes are available: no node of the pool is left."
        unschedulable = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        return {"phase": "Pending", "conditions": [unschedulable]}
    state: Object = {"running": {"startedAt": f"{_STARTED:%Y-%m-%dT%H:%M:%SZ}"}}
    if end:
        state = {
            "terminated": {
                "exitCode": 0 if end == "Succeeded" else 1,
                "reason": "Completed" if end == "Succeeded" else "Error",
            }
        }
    ready = not end
    return {
        "phase": end or "Running",
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [
            {"name": item["name"], "image": item.get("image", ""), "ready": ready, "restartCount": 0, "state": state}
            for item in spec.get("containers", [])
        ],
    }


def _suffix(job_uid: str, index: int) -> str:
    digest = hashlib.sha256(f"{job_uid}/{index}".encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:5])
