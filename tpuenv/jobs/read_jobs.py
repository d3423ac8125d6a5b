"""Reads the jobs of teams from the cluster, with their pods and their places in the queues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from tpuenv.jobs.job import WITH_PODS, Job
from tpuenv.jobs.pod import Pod
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.errors import ApiError
from tpuenv.kubernetes.objects import Object, is_true, name_of, status_of
from vocabulary.keys import JOB_LABEL, JOBSET_LABEL, LOCAL_QUEUE, RAY_CLUSTER_LABEL, RAY_ORIGIN_LABEL


def read_job(cluster: Cluster, *, team: str, kind: str, name: str) -> Job | None:
    """One job with its pods; None where there is none. Raises tpuenv.failure.Failed."""
    body = cluster.find(kind, team, name)
    if body is None:
        return None
    workloads = cluster.all("Workload", team)
    pods = [pod for labels in _labels(kind, body) for pod in cluster.all("Pod", team, labels=labels)]
    stay, leave = _pods(pods)
    job = Job(kind=kind, team=team, name=name, body=body, workload={}, pods=stay, leaving=leave, seen=_now())
    workload = next((item for item in workloads if owner_of(item) == (kind, name)), {})
    return replace(job, workload=workload, position=_positions(workloads).get(name_of(workload), 0))


def read_jobs(cluster: Cluster, team: str) -> list[Job]:
    """All jobs of a team, the oldest first. Raises tpuenv.failure.Failed."""
    workloads = cluster.all("Workload", team)
    positions = _positions(workloads)
    known = {owner_of(item): item for item in workloads}
    bodies = {
        (kind, name_of(item)): item
        for kind in WITH_PODS
        for item in cluster.all(kind, team)
        # A Job or RayCluster that another job made is a part of that.
        if kind == "JobSet" or not item["metadata"].get("ownerReferences")
    }
    whose = {label: of for of, body in bodies.items() for one in _labels(of[0], body) for label in one.items()}
    pods: dict[tuple[str, str], list[Object]] = {}
    for pod in cluster.all("Pod", team):
        labels = (pod["metadata"].get("labels") or {}).items()
        if of := next((whose[label] for label in labels if label in whose), None):
            pods.setdefault(of, []).append(pod)
    jobs, seen = [], _now()
    for kind, name in {**bodies, **known}:
        workload = known.get((kind, name), {})
        stay, leave = _pods(pods.get((kind, name), []))
        jobs.append(
            Job(
                kind=kind,
                team=team,
                name=name,
                body=bodies.get((kind, name), {}),
                workload=workload,
                pods=stay,
                leaving=leave,
                position=positions.get(name_of(workload), 0),
                seen=seen,
            )
        )
    oldest = datetime.min.replace(tzinfo=timezone.utc)
    return sorted(jobs, key=lambda job: (job.created or oldest, job.name))


def read_teams(cluster: Cluster, teams: Sequence[str]) -> tuple[list[Job], dict[str, ApiError]]:
    """The jobs of the teams, and why those of other teams may not be read. Raises ApiError where none may, Failed."""
    jobs: list[Job] = []
    refused: dict[str, ApiError] = {}
    for team in teams:
        try:
            jobs += read_jobs(cluster, team)
        except ApiError as error:
            if error.code != 403:
                raise
            refused[team] = error
    if refused and len(refused) == len(teams):
        raise next(iter(refused.values()))
    return jobs, refused


def _labels(kind: str, body: Object) -> list[dict[str, str]]:
    """The labels of its pods, each of which has one of them. A RayJob has a RayCluster and a pod that submits to it."""
    name = name_of(body)
    if kind == "RayJob":
        cluster = str(status_of(body).get("rayClusterName") or "")
        return [{RAY_ORIGIN_LABEL: name}, *([{RAY_CLUSTER_LABEL: cluster}] if cluster else [])]
    keys = {"JobSet": JOBSET_LABEL, "Job": JOB_LABEL, "RayCluster": RAY_CLUSTER_LABEL}
    return [{keys[kind]: name}] if kind in keys else []


def owner_of(workload: Object) -> tuple[str, str]:
    """The kind and name of the job of a Workload."""
    owners = workload["metadata"].get("ownerReferences") or [{}]
    owner = next((item for item in owners if item.get("controller")), owners[0])
    return str(owner.get("kind") or "Workload"), str(owner.get("name") or name_of(workload))


def _positions(workloads: Iterable[Object]) -> dict[str, int]:
    """By the name of a Workload that waits, its place among those of its LocalQueue, which is the team's only one.

    Kueue takes them by priority, then by age.
    https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#queueing-strategy
    """
    queues: dict[str, list[Object]] = {}
    for item in workloads:
        spec = item.get("spec") or {}
        if is_true(item, "QuotaReserved") or is_true(item, "Finished") or spec.get("active") is False:
            continue
        queues.setdefault(str(spec.get("queueName") or LOCAL_QUEUE), []).append(item)
    positions = {}
    for waiting in queues.values():
        waiting.sort(
            key=lambda item: (
                -int((item.get("spec") or {}).get("priority") or 0),
                str(item["metadata"].get("creationTimestamp") or ""),
            )
        )
        positions.update({name_of(item): number for number, item in enumerate(waiting, 1)})
    return positions


def _pods(bodies: Iterable[Object]) -> tuple[tuple[Pod, ...], tuple[Pod, ...]]:
    """Those that stay, and those that are being deleted: others take their place."""
    pods = [Pod(body=body) for body in bodies]
    return tuple(pod for pod in pods if not pod.deleted), tuple(pod for pod in pods if pod.deleted)


def _now() -> datetime:
    return datetime.now(timezone.utc)
