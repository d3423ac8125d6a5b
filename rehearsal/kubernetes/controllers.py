"""What controllers would do after a write: conditions of queues, admission of jobs, finalizers.

Kueue 0.19.2: pkg/controller/core. Admission itself is `admission`, fed with the cluster's objects.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import admission
from rehearsal.kubernetes import kuberay, webhooks
from rehearsal.kubernetes.objects import Objects, full_name
from rehearsal.kubernetes.placement import is_finished
from rehearsal.kubernetes.pods import end_of, is_of_a_job, pods_of_jobs
from rehearsal.kubernetes.resources import KUEUE
from vocabulary.quantity import decimal, parse

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
IN_USE = "kueue.x-k8s.io/resource-in-use"
DEFAULT_QUEUE = "default"

JOB_KINDS = {"Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2", "RayJob": "ray.io/v1", "RayCluster": "ray.io/v1"}

# The kinds whose status is worked out when it is asked for.
STATUS_KINDS = ("ClusterQueue", "LocalQueue", "Namespace")

Object = dict[str, Any]


def reconcile(api: Objects) -> None:
    """Bring the cluster to rest after a change: stop, admit, and let go of what nothing holds any more."""
    going = True
    while going:
        going = False
        items = api.everything()
        there = {item["metadata"].get("uid") for item in items}
        for item in items:
            goes = "deletionTimestamp" in item["metadata"] or _has_lost_its_owner(item, there)
            if goes and not list(holders(api, item)):
                api.remove(item)
                going = True
        if webhooks.installed(api, "kueue"):
            _forget_jobs_that_are_gone(api)
            _stop(api)
            _admit(api)
    kuberay.reconcile(api)
    _forget_pods_that_are_gone(api)


def holders(api: Objects, body: Object) -> Iterator[str]:
    """What keeps an object from going, in words."""
    kind, name = body["kind"], body["metadata"]["name"]
    if kind == "ClusterQueue":
        for workload in _workloads(api):
            if _admitted_by(workload) == name:
                yield f"workload {full_name(workload)} is admitted by it; finalizer {IN_USE} stays until it ends"
    elif kind == "ResourceFlavor":
        for queue in api.of_kind("ClusterQueue"):
            if name in _flavors(queue):
                yield f"ClusterQueue {queue['metadata']['name']} uses it; finalizer {IN_USE} stays until that changes"
    elif kind == "AdmissionCheck":
        for queue in api.of_kind("ClusterQueue"):
            if name in _checks(queue):
                yield f"ClusterQueue {queue['metadata']['name']} uses it; finalizer {IN_USE} stays until that changes"
    elif kind == "Namespace" and not webhooks.installed(api, "kueue"):
        for item in api.of_kind(*JOB_KINDS):
            if item["metadata"].get("namespace") == name and _is_managed(item):
                yield f"{item['kind']} {full_name(item)} has a finalizer that only Kueue removes, and Kueue is gone"


def _has_lost_its_owner(body: Object, there: set[object]) -> bool:
    """Whether the garbage collector deletes it. `there`: the uids of all objects. The functions below delete Workloads,
    which only Kueue lets go, and pods. https://kubernetes.io/docs/concepts/architecture/garbage-collection/
    """
    owners = body["metadata"].get("ownerReferences") or []
    return bool(owners) and body["kind"] not in ("Workload", "Pod") and all(item["uid"] not in there for item in owners)


def with_status(api: Objects, body: Object) -> Object:
    """The object with the conditions and counts that its controller would write."""
    out = copy.deepcopy(body)
    kind = body.get("kind")
    if kind == "ClusterQueue":
        out["status"] = _cluster_queue_status(api, body)
    elif kind == "LocalQueue":
        out["status"] = _local_queue_status(api, body)
    elif kind == "Namespace":
        out["status"] = {"phase": "Terminating" if "deletionTimestamp" in body["metadata"] else "Active"}
    return out


def _cluster_queue_status(api: Objects, queue: Object) -> Object:
    name, policy = queue["metadata"]["name"], queue.get("spec", {}).get("stopPolicy", "None")
    known = {flavor["metadata"]["name"] for flavor in api.of_kind("ResourceFlavor")}
    missing = [flavor for flavor in _flavors(queue) if flavor not in known]
    if missing:
        condition = _condition(False, "FlavorNotFound", f"Can't admit new workloads: references missing {missing}.")
    elif policy != "None":
        condition = _condition(False, "Stopped", "Can't admit new workloads: is stopped.")
    else:
        condition = _condition(True, "Ready", "Can admit new workloads")
    admitted = sum(_admitted_by(workload) == name for workload in _workloads(api))
    queues = {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in _queues_of(api, name)}
    pending = sum(
        not _admitted_by(item)
        and not is_finished(item)
        and (item["metadata"]["namespace"], item["spec"]["queueName"]) in queues
        for item in _workloads(api)
    )
    usage = _usage(api, name)
    return {
        "conditions": [condition],
        "flavorsReservation": usage,
        "flavorsUsage": usage,
        "admittedWorkloads": admitted,
        "reservingWorkloads": admitted,
        "pendingWorkloads": pending,
    }


def _usage(api: Objects, cluster_queue: str) -> list[Object]:
    """What the admitted jobs of a ClusterQueue use, by flavor and resource."""
    used: dict[str, dict[str, Fraction]] = {}
    for workload in _workloads(api):
        if _admitted_by(workload) == cluster_queue:
            for assignment in workload["status"]["admission"]["podSetAssignments"]:
                for resource, flavor in assignment["flavors"].items():
                    amounts = used.setdefault(flavor, {})
                    amount = parse(assignment["resourceUsage"][resource])
                    amounts[resource] = amounts.get(resource, Fraction()) + amount
    return [
        {"name": flavor, "resources": [{"name": name, "total": decimal(total)} for name, total in amounts.items()]}
        for flavor, amounts in used.items()
    ]


def _local_queue_status(api: Objects, queue: Object) -> Object:
    name = queue.get("spec", {}).get("clusterQueue")
    cluster_queues = [item for item in api.of_kind("ClusterQueue") if item["metadata"]["name"] == name]
    if not cluster_queues:
        return {"conditions": [_condition(False, "ClusterQueueDoesNotExist", "Can't submit new workloads")]}
    ready = _cluster_queue_status(api, cluster_queues[0])["conditions"][0]["status"] == "True"
    reason = "Ready" if ready else "ClusterQueueIsInactive"
    return {"conditions": [_condition(ready, reason, "Can submit new workloads to ClusterQueue" if ready else "Can't")]}


def _condition(status: bool, reason: str, message: str) -> Object:
    return {"type": "Active", "status": str(status), "reason": reason, "message": message}


def _forget_jobs_that_are_gone(api: Objects) -> None:
    """A Workload goes with its job."""
    owners = {(item["kind"], full_name(item)) for item in api.of_kind(*JOB_KINDS)}
    for workload in _workloads(api):
        owner = workload["metadata"]["ownerReferences"][0]
        if (owner["kind"], f"{workload['metadata']['namespace']}/{owner['name']}") not in owners:
            api.remove(workload)


def _forget_pods_that_are_gone(api: Objects) -> None:
    """A pod whose status was written is stored: it goes with its job, and when the job is suspended or restarts."""
    stored = [item for item in api.of_kind("Pod") if is_of_a_job(item)]
    if stored:
        running = {full_name(pod) for pod in pods_of_jobs(api)}
        for pod in stored:
            if full_name(pod) not in running:
                api.remove(pod)


def _stop(api: Objects) -> None:
    """HoldAndDrain takes admission back: jobs stay, suspended.

    https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#stoppolicy
    """
    draining = {
        item["metadata"]["name"]
        for item in api.of_kind("ClusterQueue")
        if item.get("spec", {}).get("stopPolicy") == "HoldAndDrain"
    }
    for workload in _workloads(api):
        if _admitted_by(workload) in draining:
            _evict(api, workload, "ClusterQueueStopped", "The ClusterQueue is stopped")


def _evict(api: Objects, workload: Object, reason: str, message: str, *more: Object) -> None:
    evicted = {"type": "Evicted", "status": "True", "reason": reason, "message": message}
    workload["status"] = {"conditions": [evicted, *more]}
    api.store(workload)
    _suspend(api, workload, True)


def _admit(api: Objects) -> None:
    """Every managed job has a Workload, and those that fit are admitted, until nobody is stopped for another."""
    for _ in range(1 + len(_workloads(api))):
        if not _admit_once(api):
            break


def _admit_once(api: Objects) -> bool:
    """In order of creation; whether any was stopped to make room."""
    stopped = False
    known = {(item["metadata"]["ownerReferences"][0]["kind"], _owner(item)): item for item in _workloads(api)}
    for job in api.of_kind(*JOB_KINDS):
        if not _managed_queue(api, job) or "deletionTimestamp" in job["metadata"]:
            continue
        workload = known.get((job["kind"], full_name(job)))
        if workload and end_of(job):
            _finish(api, workload, end_of(job))
            continue
        if workload and _admitted_by(workload):
            continue
        explanation = explain(api, job)
        workload = workload or _new_workload(api, job, explanation.priority)
        # One that would wait on for something else stops nobody.
        if {reason.code for reason in explanation.reasons} == {"preempts"}:
            for other in known.values():
                if full_name(other) in explanation.preempts:
                    _preempt(api, workload, other, explanation.cluster_queue)
            stopped, explanation = True, explain(api, job)
        if explanation.verdict is admission.Verdict.ADMITTED:
            conditions = [{"type": type_, "status": "True", "reason": type_} for type_ in ("QuotaReserved", "Admitted")]
            workload["status"] = {"admission": explanation.admission(), "conditions": conditions}
        else:
            words = "; ".join(reason.what for reason in explanation.reasons)
            stopped_for = [item for item in _conditions(workload) if item["type"] in ("Evicted", "Preempted")]
            waits = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": words}
            workload["status"] = {"conditions": [*stopped_for, waits]}
        known[job["kind"], full_name(job)] = workload
        api.store(workload)
        _suspend(api, workload, not _admitted_by(workload))
    return stopped


def _conditions(workload: Object) -> list[Object]:
    return list((workload.get("status") or {}).get("conditions") or [])


def _preempt(api: Objects, workload: Object, other: Object, queue: str) -> None:
    """Stop the other Workload for this one. Kueue 0.19.2, pkg/scheduler/preemption/preemption.go"""
    of_other = str(_admitted_by(other))
    reason, why = (
        ("InClusterQueue", "prioritization in the ClusterQueue")
        if of_other == queue
        else ("InCohortReclamation", "reclamation within the cohort")
    )
    message = (
        f"Preempted to accommodate a workload (UID: {workload['metadata']['uid']}, JobUID: UNKNOWN) due to {why}; "
        f"preemptor path: {_path(api, queue)}; preemptee path: {_path(api, of_other)}"
    )
    preempted = {"type": "Preempted", "status": "True", "reason": reason, "message": message}
    _evict(api, other, "Preempted", message, preempted)


def _path(api: Objects, queue: str) -> str:
    """ "/cohort/queue" """
    cohorts = [item["spec"].get("cohortName", "") for item in api.of_kind("ClusterQueue") if _name(item) == queue]
    return "/".join(["", *filter(None, cohorts), queue])


def _name(body: Object) -> str:
    return str(body["metadata"]["name"])


def _finish(api: Objects, workload: Object, end: str) -> None:
    """A Workload whose job has ended keeps its admission, and its quota is free.

    https://kueue.sigs.k8s.io/docs/concepts/workload/
    """
    if not is_finished(workload):
        message = "Job finished successfully" if end == "Succeeded" else "Job failed"
        finished = {"type": "Finished", "status": "True", "reason": end, "message": message}
        workload["status"]["conditions"] = [*workload["status"].get("conditions", []), finished]
        api.store(workload)


def explain(api: Objects, job: Object) -> admission.Explanation:
    """Where Kueue would admit a job, in the cluster as it stands."""
    namespace = job["metadata"].get("namespace", "default")
    return admission.explain(admission_objects(api), job, namespace=namespace)


def admission_objects(api: Objects) -> list[Object]:
    """What `admission` reads of the cluster."""
    kinds = ("Namespace", "LimitRange", "WorkloadPriorityClass", "PriorityClass")
    queues = ("ResourceFlavor", "ClusterQueue", "LocalQueue", "Workload")
    return [item for item in api.of_kind(*kinds, *queues) if item["kind"] != "Workload" or _admitted_by(item)]


def _new_workload(api: Objects, job: Object, priority: int) -> Object:
    metadata = job["metadata"]
    workload = {
        "apiVersion": KUEUE[0].api_version,
        "kind": "Workload",
        "metadata": {
            "name": f"{job['kind'].lower()}-{metadata['name']}",
            "namespace": metadata["namespace"],
            "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"workload/{metadata.get('uid', '')}")),
            "creationTimestamp": metadata.get("creationTimestamp"),
            "finalizers": [IN_USE],
            "ownerReferences": [
                {
                    "apiVersion": job["apiVersion"],
                    "kind": job["kind"],
                    "name": metadata["name"],
                    "uid": metadata.get("uid", ""),
                }
            ],
        },
        "spec": {"queueName": _managed_queue(api, job), "priority": priority},
        "status": {},
    }
    api.store(workload)
    return workload


def _suspend(api: Objects, workload: Object, suspended: bool) -> None:
    owner = workload["metadata"]["ownerReferences"][0]
    for item in api.of_kind(owner["kind"]):
        if full_name(item) == _owner(workload):
            item.setdefault("spec", {})["suspend"] = suspended
            api.store(item)


def _managed_queue(api: Objects, job: Object) -> str:
    """The LocalQueue of a job: its label, or the one named "default" of its namespace (manageJobsWithoutQueueName).

    The RayCluster of a RayJob has none: Kueue queues the RayJob.
    """
    if kuberay.owner_of(job):
        return ""
    given = job["metadata"].get("labels", {}).get(QUEUE_LABEL)
    if given:
        return str(given)
    namespace = job["metadata"].get("namespace")
    names = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in api.of_kind("LocalQueue")]
    return DEFAULT_QUEUE if (namespace, DEFAULT_QUEUE) in names else ""


def _is_managed(job: Object) -> bool:
    return bool(job["metadata"].get("labels", {}).get(QUEUE_LABEL)) and not kuberay.owner_of(job)


def _workloads(api: Objects) -> list[Object]:
    return api.of_kind("Workload")


def _queues_of(api: Objects, cluster_queue: str) -> list[Object]:
    return [item for item in api.of_kind("LocalQueue") if item.get("spec", {}).get("clusterQueue") == cluster_queue]


def _admitted_by(workload: Object) -> str:
    """The ClusterQueue whose quota it uses, if any."""
    return "" if is_finished(workload) else str(workload.get("status", {}).get("admission", {}).get("clusterQueue", ""))


def _flavors(queue: Object) -> list[str]:
    groups = queue.get("spec", {}).get("resourceGroups", [])
    return [flavor["name"] for group in groups for flavor in group.get("flavors", [])]


def _checks(queue: Object) -> list[str]:
    checks = queue.get("spec", {}).get("admissionChecksStrategy", {}).get("admissionChecks", [])
    return [check["name"] for check in checks]


def _owner(workload: Object) -> str:
    return f"{workload['metadata']['namespace']}/{workload['metadata']['ownerReferences'][0]['name']}"
