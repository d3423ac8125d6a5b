"""Deletes a job and creates it again, with what `tpuenv submit` created with it: it waits for the next free slice."""

from __future__ import annotations

import copy
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from tpuenv.failure import Failed, Interrupted, WrongArgument
from tpuenv.jobs.job import Job, State
from tpuenv.jobs.submission import create
from tpuenv.kubernetes.client import CREATED, Cluster
from tpuenv.kubernetes.errors import ApiError
from tpuenv.kubernetes.objects import Object, name_of
from vocabulary.keys import JOB_LABEL, JOBSET_LABEL, RECIPE_LABEL
from vocabulary.printable import counted

GONE_SECONDS = 120  # for the job and its Jobs; nothing waits for pods

# What Kueue writes into the pod templates of a job that it starts, and takes back when it stops it: kept as it was in
# the Workload. Kueue 0.19.2, pkg/podset/podset.go.
_OF_POD = ("nodeSelector", "tolerations", "schedulingGates")
_OF_METADATA = ("labels", "annotations")
# The Job controller's own. https://kubernetes.io/docs/concepts/workloads/controllers/job/#specifying-your-own-pod-selector
_OF_JOB = (JOB_LABEL, "job-name", "batch.kubernetes.io/controller-uid", "controller-uid")


def requeue(cluster: Cluster, job: Job) -> Job:
    """The job as created again, by the same name. Until it exists its manifests are in a file of their own.

    Raises WrongArgument where it waits already or has ended, Failed and Interrupted, which name the file.
    """
    if job.state.is_end:
        raise WrongArgument(f"{job} has ended ({job.state.value}): cancel it, and submit it again")
    if job.state == State.WAITING:
        raise WrongArgument(f"{job} waits in its queue already, and would lose its place there")
    body = cluster.find(job.kind, job.team, job.name)
    if body is None or not body.get("spec"):
        raise Failed(f"{job} is not there any more: submit it again")
    owned = list(_owned(cluster, body))
    manifests = [_manifest(body, job.workload), *(_manifest(item, {}) for item in owned)]
    kept = _keep(job.name, manifests)
    try:
        cluster.delete(job.kind, job.team, job.name)
        _wait(cluster, [body, *owned])
        labels = body["metadata"].get("labels") or {}
        again = create(cluster, manifests, recipe=str(labels.get(RECIPE_LABEL) or ""))
    except BaseException as error:
        if isinstance(error, ApiError) and _stays(cluster, body):
            kept.unlink()
            raise
        raise (Failed if isinstance(error, Exception) else Interrupted)(
            f"{str(error) or 'interrupted'}\n{job} may be deleted, and not created again. Its manifests are in {kept}: "
            f"where `tpuenv jobs` does not show it, `kubectl create -f {kept}` creates it"
        ) from error
    kept.unlink()
    return again


def _owned(cluster: Cluster, body: Object) -> Iterator[Object]:
    """What Kubernetes deletes with the job, and no controller made for it."""
    for kind in CREATED:
        for item in cluster.all(kind, body["metadata"]["namespace"]):
            owners = item["metadata"].get("ownerReferences") or []
            if [owner["uid"] for owner in owners] == [body["metadata"]["uid"]] and not owners[0].get("controller"):
                yield item


def _manifest(body: Object, workload: Object) -> Object:
    """The object as it was submitted: without what the API server and controllers have written."""
    metadata = {key: value for key, value in body["metadata"].items() if key in ("name", "namespace", *_OF_METADATA)}
    manifest = copy.deepcopy({**body, "metadata": metadata})
    manifest.pop("status", None)
    spec = manifest.get("spec") or {}
    spec.pop("suspend", None)
    if body["kind"] == "Job" and not spec.get("manualSelector"):
        spec.pop("selector", None)
        labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        for label in _OF_JOB:
            labels.pop(label, None)
    if body["kind"] == "Service" and spec.get("clusterIP") != "None":
        for key in ("clusterIP", "clusterIPs"):
            spec.pop(key, None)
    sets = (workload.get("spec") or {}).get("podSets") or []
    before = {str(item.get("name")): item.get("template") or {} for item in sets}
    for name, template in _templates(body["kind"], spec):
        if name.lower() in before:
            _restore(template, before[name.lower()])
    return manifest


def _templates(kind: str, spec: Object) -> Iterator[tuple[str, Object]]:
    """The pod templates of a job by the names of Kueue's pod sets."""
    if kind == "Job":
        yield "main", spec["template"]
    elif kind == "JobSet":
        yield from ((item["name"], item["template"]["spec"]["template"]) for item in spec.get("replicatedJobs") or [])
    elif kind in ("RayCluster", "RayJob"):
        ray = spec if kind == "RayCluster" else spec.get("rayClusterSpec") or {}
        yield from ((item["groupName"], item["template"]) for item in ray.get("workerGroupSpecs") or [])
        if head := ray.get("headGroupSpec"):
            yield "head", head["template"]
        if submitter := spec.get("submitterPodTemplate"):
            yield "submitter", submitter


def _restore(template: Object, before: Object) -> None:
    for part, keys in (("spec", _OF_POD), ("metadata", _OF_METADATA)):
        was, now = before.get(part) or {}, template.setdefault(part, {})
        for key in keys:
            now.pop(key, None)
            if was.get(key):
                now[key] = was[key]


def _keep(name: str, manifests: list[Object]) -> Path:
    """A file that only this person may read: a Secret may be among them."""
    handle, path = tempfile.mkstemp(prefix=f"{name}-", suffix=".yaml")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        yaml.safe_dump_all(manifests, file, sort_keys=False)
    return Path(path)


def _wait(cluster: Cluster, deleted: list[Object]) -> None:
    """Until they are gone, and the Jobs of a JobSet, whose names the next one needs."""
    body = deleted[0]
    place, until = body["metadata"]["namespace"], time.monotonic() + GONE_SECONDS
    while True:
        there = [item for item in deleted if _is_there(cluster, item)]
        jobs = cluster.all("Job", place, labels={JOBSET_LABEL: name_of(body)}) if body["kind"] == "JobSet" else []
        if not there and not jobs:
            return
        if time.monotonic() > until:
            left = [f"{item['kind']} {name_of(item)}" for item in (*there, *jobs)]
            raise Failed(f"{', '.join(left[:4])}: still being deleted after {counted(GONE_SECONDS, 'second')}")
        time.sleep(cluster.patience.poll)


def _is_there(cluster: Cluster, item: Object) -> bool:
    found = cluster.find(item["kind"], item["metadata"]["namespace"], name_of(item))
    return found is not None and found["metadata"].get("uid") == item["metadata"].get("uid")


def _stays(cluster: Cluster, body: Object) -> bool:
    """Whether it is there as before; what cannot be read may be gone."""
    try:
        found = cluster.find(body["kind"], body["metadata"]["namespace"], name_of(body))
    except Failed:
        return False
    same = found is not None and found["metadata"].get("uid") == body["metadata"].get("uid")
    return same and not (found or {})["metadata"].get("deletionTimestamp")
