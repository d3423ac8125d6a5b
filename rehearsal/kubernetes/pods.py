"""The pods of jobs that run, as JobSet, KubeRay, the Job controller and a kubelet would have them, and their logs.

No program runs here: a pod with a node is Running until its job ends, and its log is one line that says so. What is
otherwise (an image that cannot be pulled, a container that failed) is written to a pod as its status, and the end of a
job to the status of the job, with a patch. The Jobs between a JobSet and its pods are left out.

Names and labels: jobset-sigs-k8s-io/jobset v0.12.0, pkg/controllers and api/jobset/v1alpha2 (keys);
https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from rehearsal.kubernetes import kuberay, warden
from rehearsal.kubernetes.batch_pods import STARTED, pods_of_batch_job
from rehearsal.kubernetes.nodes import node_name
from rehearsal.kubernetes.objects import Object, Objects
from rehearsal.kubernetes.placement import placements
from rehearsal.kubernetes.ray_pods import heads_and_workers, submitter
from rehearsal.kubernetes.status import Status
from vocabulary.keys import (
    JOB_GLOBAL_INDEX_LABEL,
    JOB_INDEX_LABEL,
    JOB_LABEL,
    JOBSET_LABEL,
    RAY_CLUSTER_LABEL,
    REPLICATED_JOB_LABEL,
    REPLICATED_JOB_REPLICAS_LABEL,
    RESTART_ATTEMPT_LABEL,
)

LOG = "pod-log"  # the kind, in the cloud, of the log of a pod: a list of times and lines

NO_PROGRAM = "This is a rehearsal: the fake cluster runs no programs, so this is all that {name} logs."
NO_END = " The job runs until `tpuenv cancel {job}`."

_STARTED = datetime.fromisoformat(STARTED.replace("Z", "+00:00"))
NodeNames = dict[str, list[str]]  # of a job, by pod set


def pods_of_jobs(api: Objects, namespace: str = "") -> list[Object]:
    """The pods of every job that is not suspended, in one namespace or in all."""
    nodes, autopilot = _nodes_by_job(api), warden.is_watched(api)
    pods: list[Object] = []
    for job in api.of_kind(*_PODS):
        if namespace and job["metadata"].get("namespace") != namespace:
            continue
        if job.get("spec", {}).get("suspend") or "deletionTimestamp" in job["metadata"]:
            continue
        owner = kuberay.owner_of(job)
        queued = ("RayJob", owner) if owner else (job["kind"], job["metadata"]["name"])
        made = _PODS[job["kind"]](job, nodes.get((job["metadata"]["namespace"], *queued), {}), end_of(job))
        pods += [pod for pod in made if not (autopilot and any(warden.violations(pod["spec"])))]
    return pods


def end_of(job: Object) -> str:
    """The phase in which the pods of a job have ended, "Succeeded" or "Failed"; "" while it has not."""
    if job["kind"] == "RayJob":
        return kuberay.end_of(job)
    phases = {"Complete": "Succeeded", "Completed": "Succeeded", "Failed": "Failed"}
    for condition in (job.get("status") or {}).get("conditions") or []:
        if condition.get("status") == "True" and condition.get("type") in phases:
            return phases[condition["type"]]
    return ""


def is_of_a_job(pod: Object) -> bool:
    """Whether a stored Pod is one that a job's controller has made, by its labels."""
    labels = pod["metadata"].get("labels") or {}
    return pod["kind"] == "Pod" and bool({JOBSET_LABEL, JOB_LABEL, RAY_CLUSTER_LABEL} & labels.keys())


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


def _nodes_by_job(api: Objects) -> dict[tuple[str, str, str], NodeNames]:
    """The names of the nodes of each pod set, pod after pod, by the namespace, kind and name of the job."""
    nodes: dict[tuple[str, str, str], NodeNames] = {}
    for placed in placements(api):
        metadata = placed.workload["metadata"]
        owner = metadata["ownerReferences"][0]
        names = [node_name(api.cluster, node.pool, number) for node, numbers in placed.hosts for number in numbers]
        of_job = nodes.setdefault((metadata["namespace"], owner["kind"], owner["name"]), {})
        of_job[placed.assignment["name"]] = names
    return nodes


def _of_job(job: Object, nodes: NodeNames, end: str) -> Iterator[Object]:
    yield from pods_of_batch_job(job["metadata"]["name"], job, job["spec"], {}, nodes.get("main", []), end)


def _of_job_set(job: Object, nodes: NodeNames, end: str) -> Iterator[Object]:
    restarts = int((job.get("status") or {}).get("restarts") or 0)
    every = 0
    for replicated in job["spec"].get("replicatedJobs", []):
        names = nodes.get(replicated["name"], [])
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
            yield from pods_of_batch_job(name, job, spec, labels, names[index * size : (index + 1) * size], end)


_PODS = {"Job": _of_job, "JobSet": _of_job_set, "RayJob": submitter, "RayCluster": heads_and_workers}
