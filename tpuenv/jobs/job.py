"""A job in the cluster: its state, in what place it waits, its hosts, and why it does not run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.errors import ApiError
from vocabulary.keys import LOCAL_QUEUE, POOL_GROUP_LABEL, TPU
from vocabulary.printable import counted

Object = dict[str, Any]

# On pods. JobSet 0.12.0: api/jobset/v1alpha2; Kubernetes: https://kubernetes.io/docs/reference/labels-annotations-taints/
JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
_REPLICATED_JOB_LABEL = "jobset.sigs.k8s.io/replicatedjob-name"
_SLICE_LABEL = "jobset.sigs.k8s.io/job-index"
_HOST_LABEL = "batch.kubernetes.io/job-completion-index"
_JOB_LABEL = "batch.kubernetes.io/job-name"

# The kinds whose pods are known by the labels above. Of others only what Kueue says of them is known.
WITH_PODS = ("JobSet", "Job")


class State(str, Enum):
    """How far a job is."""

    WAITING = "waiting"  # for quota, or for Google to find machines
    SUSPENDED = "suspended"  # Kueue has given it up: nothing starts it but a person
    ADMITTED = "admitted"  # it has its quota, and no pods yet
    STARTING = "starting"  # not all of its hosts run
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    @property
    def is_end(self) -> bool:
        return self in (State.SUCCEEDED, State.FAILED)


@dataclass(frozen=True, kw_only=True)
class Pod:
    """One pod of a job. `slice` counts the slices of the job from 0, and `host` the hosts of the slice."""

    body: Object

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.body["metadata"].get("uid") or "")

    @property
    def created(self) -> str:
        """The time as the API server writes it, in order as text."""
        return str(self.body["metadata"].get("creationTimestamp") or "")

    @property
    def part(self) -> str:
        """The name of the replicated job of a JobSet."""
        return self._label(_REPLICATED_JOB_LABEL)

    @property
    def slice(self) -> int:
        return _number(self._label(_SLICE_LABEL))

    @property
    def host(self) -> int:
        return _number(self._label(_HOST_LABEL))

    @property
    def phase(self) -> str:
        return str(self._status.get("phase") or "Pending")

    @property
    def ready(self) -> bool:
        """Whether all of its containers run, so that the program has begun."""
        return self.phase == "Running" and not any("waiting" in state for _, state in self.containers)

    @property
    def started(self) -> bool:
        """Whether its containers run or have ended: there is a log."""
        return self.ready or self.phase in ("Succeeded", "Failed")

    @property
    def has_chips(self) -> bool:
        return _has_chips(self.body.get("spec") or {})

    @property
    def containers(self) -> list[tuple[Object, Object]]:
        """The status of each container, and its state: {"waiting": {"reason": ...}}."""
        keys = ("initContainerStatuses", "containerStatuses")
        return [(item, item.get("state") or {}) for key in keys for item in self._status.get(key) or []]

    @property
    def container(self) -> str:
        """The container whose log is the program's: that with the chips, or the first."""
        containers = (self.body.get("spec") or {}).get("containers") or [{}]
        program = next((item for item in containers if _has_chips({"containers": [item]})), containers[0])
        return str(program.get("name") or "")

    @property
    def unschedulable(self) -> str:
        """Why no node takes it, in the scheduler's words; "" if one has."""
        for condition in self._status.get("conditions") or []:
            if (condition.get("type"), condition.get("status")) == ("PodScheduled", "False"):
                return str(condition.get("message") or condition.get("reason") or "no node takes it")
        return ""

    @property
    def place(self) -> str:
        """ "slice 0, host 2"; of a Job without chips "pod 0"."""
        if not self.has_chips and not self.part:
            return f"pod {self.host}"
        part = "" if self.has_chips or not self.part else f"part {self.part}, "
        return f"{part}slice {self.slice}, host {self.host}"

    @property
    def _status(self) -> Object:
        return self.body.get("status") or {}

    def _label(self, key: str) -> str:
        return str((self.body["metadata"].get("labels") or {}).get(key) or "")


@dataclass(frozen=True, kw_only=True)
class Job:
    """A JobSet, Job, RayJob or RayCluster. `body` is empty where only Kueue's Workload was read, and that where Kueue
    has not seen the job yet. `position` is its place in its team's queue, from 1, and 0 if it does not wait in it.
    """

    kind: str
    team: str
    name: str
    body: Object
    workload: Object
    pods: tuple[Pod, ...] = ()
    position: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.team}/{self.name}"

    @property
    def state(self) -> State:
        """https://kueue.sigs.k8s.io/docs/concepts/workload/ and the conditions of JobSets and Jobs"""
        if _true(self.body, "Failed"):
            return State.FAILED
        if _true(self.body, "Completed") or _true(self.body, "Complete"):
            return State.SUCCEEDED
        if finished := _condition(self.workload, "Finished"):
            return State.FAILED if "Failed" in str(finished.get("reason")) else State.SUCCEEDED
        if not _true(self.workload, "Admitted"):
            given_up = (self.workload.get("spec") or {}).get("active") is False
            return State.SUSPENDED if given_up else State.WAITING
        if self.kind in WITH_PODS and self.hosts and self.running == self.hosts:
            return State.RUNNING
        return State.STARTING if self.pods else State.ADMITTED

    @property
    def hosts(self) -> int:
        """How many pods with chips it has when it runs; all its pods if none has chips."""
        parts = self._parts()
        with_chips = [part for part in parts if part.has_chips]
        return sum(part.replicas * part.size for part in with_chips or parts)

    @property
    def slices(self) -> int:
        return sum(part.replicas for part in self._parts() if part.has_chips)

    @property
    def group(self) -> str:
        """The pool group that it runs on, or asks for; "" if neither says it."""
        for part in self._parts():
            if part.has_chips and (group := part.selector.get(POOL_GROUP_LABEL)):
                return str(group)
        flavors = (item.get("flavors") or {} for item in self.assignments)
        return next((str(given[TPU]) for given in flavors if TPU in given), "")

    @property
    def assignments(self) -> list[Object]:
        """What Kueue has given each pod set; nothing while it waits."""
        return list((_status(self.workload).get("admission") or {}).get("podSetAssignments") or [])

    @property
    def host_pods(self) -> tuple[Pod, ...]:
        """By slice and host, and where one was replaced, the newer later."""
        with_chips = tuple(pod for pod in self.pods if pod.has_chips)
        return tuple(sorted(with_chips or self.pods, key=lambda pod: (pod.slice, pod.host, pod.created, pod.name)))

    @property
    def running(self) -> int:
        """Of the hosts, how many run."""
        return sum(pod.ready for pod in self.host_pods)

    def pod(self, *, slice: int, host: int, part: str = "") -> Pod | None:
        """The pod of a host; of another part of a JobSet than that with the chips where `part` names one."""
        pods = [pod for pod in self.pods if pod.part == part] if part else self.host_pods
        here = [pod for pod in pods if (pod.slice, pod.host) == (slice, host)]
        return here[-1] if here else None

    @property
    def all_started(self) -> bool:
        """Whether every host runs, or has run."""
        return len(self.host_pods) >= self.hosts and all(pod.started for pod in self.host_pods)

    @property
    def restarts(self) -> int:
        return int(_status(self.body).get("restarts") or 0)

    @property
    def restarts_used(self) -> int:
        """How many of them count: those after an interruption need not."""
        used = _status(self.body).get("restartsCountTowardsMax")
        return self.restarts if used is None else int(used)

    @property
    def most_restarts(self) -> int:
        """After how many that count it fails."""
        return int(((self.body.get("spec") or {}).get("failurePolicy") or {}).get("maxRestarts") or 0)

    @property
    def created(self) -> datetime | None:
        return _time(((self.body or self.workload).get("metadata") or {}).get("creationTimestamp"))

    @property
    def end_message(self) -> str:
        """Why it has failed, in JobSet's words."""
        condition = _condition(self.body, "Failed") or _condition(self.workload, "Finished")
        return str(condition.get("message") or condition.get("reason") or "")

    @property
    def words(self) -> str:
        """The state for people: "running on 4 hosts", "starting (2 of 4 hosts run)"."""
        if self.state == State.STARTING and self.hosts:
            return f"starting ({self.running} of {counted(self.hosts, 'host')} run)"
        if self.state == State.RUNNING:
            return f"running on {counted(self.hosts, 'host')}"
        return str(self.state.value)

    @property
    def waits_because(self) -> str:
        """What Kueue says, why it is not admitted; "" if it is, or Kueue says nothing."""
        if self.state not in (State.WAITING, State.SUSPENDED):
            return ""
        if not self.workload:
            return "Kueue has not seen it yet"
        return "; ".join(dict.fromkeys(filter(None, (*self._evicted(), *self._checks(), self._quota()))))

    def _evicted(self) -> Iterator[str]:
        condition = _condition(self.workload, "Evicted")
        if condition.get("status") != "True":
            return
        reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
        known = {
            "PodsReadyTimeout": "Kueue stopped it, because not all of its pods were ready in time (waitForPodsReady)",
            "Preempted": "Kueue stopped it for another job, which has a higher priority or owns the slices",
            "ClusterQueueStopped": "Kueue stopped it, because an administrator has stopped the queue",
            "DeactivatedDueToRequeuingLimitExceeded": "Kueue gave it up: its pods were not ready in time too often",
        }
        words = known.get(reason, f"Kueue stopped it ({reason})")
        yield f"{words}: {message}" if message else words

    def _checks(self) -> Iterator[str]:
        """What admission checks wait for: with flex-start and queued provisioning, Google's machines."""
        if not _true(self.workload, "QuotaReserved"):
            return
        for check in _status(self.workload).get("admissionChecks") or []:
            if check.get("state") != "Ready":
                message = str(check.get("message") or "")
                yield f"it has its quota, and Google looks for machines ({check.get('name')})" + (
                    f": {message}" if message else ""
                )

    def _quota(self) -> str:
        condition = _condition(self.workload, "QuotaReserved")
        return str(condition.get("message") or "") if condition.get("status") == "False" else ""

    def _parts(self) -> list[_Part]:
        spec = self.body.get("spec") or {}
        if self.kind == "JobSet":
            items = [(item, item.get("template") or {}) for item in spec.get("replicatedJobs") or []]
            return [_part(int(item.get("replicas", 1)), template.get("spec") or {}) for item, template in items]
        if self.kind == "Job":
            return [_part(1, spec)]
        sets = (self.workload.get("spec") or {}).get("podSets") or []
        return [_part(1, {"parallelism": item.get("count", 1), "template": item.get("template")}) for item in sets]


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Pods that are alike: `replicas` Jobs of `size` pods."""

    replicas: int
    size: int
    has_chips: bool
    selector: Object


def _part(replicas: int, job_spec: Object) -> _Part:
    pod = (job_spec.get("template") or {}).get("spec") or {}
    size = int(job_spec.get("parallelism", 1))
    return _Part(replicas=replicas, size=size, has_chips=_has_chips(pod), selector=pod.get("nodeSelector") or {})


def read_job(cluster: Cluster, *, team: str, kind: str, name: str) -> Job | None:
    """One job with its pods; None where there is none. Raises tpuenv.failure.Failed."""
    body = cluster.find(kind, team, name)
    if body is None:
        return None
    workloads = cluster.all("Workload", team)
    labels = {JOBSET_LABEL if kind == "JobSet" else _JOB_LABEL: name}
    pods = cluster.all("Pod", team, labels=labels) if kind in WITH_PODS else []
    job = Job(kind=kind, team=team, name=name, body=body, workload={}, pods=_pods(pods))
    workload = next((item for item in workloads if owner_of(item) == (kind, name)), {})
    return replace(job, workload=workload, position=_positions(workloads).get(name_of(workload), 0))


def read_jobs(cluster: Cluster, team: str) -> list[Job]:
    """All jobs of a team, the oldest first. Raises tpuenv.failure.Failed."""
    workloads = cluster.all("Workload", team)
    positions = _positions(workloads)
    known = {owner_of(item): item for item in workloads}
    bodies = {("JobSet", name_of(item)): item for item in cluster.all("JobSet", team)}
    for item in cluster.all("Job", team):
        if not item["metadata"].get("ownerReferences"):
            bodies["Job", name_of(item)] = item
    pods: dict[tuple[str, str], list[Object]] = {}
    for pod in cluster.all("Pod", team):
        labels = pod["metadata"].get("labels") or {}
        of = ("JobSet", labels[JOBSET_LABEL]) if JOBSET_LABEL in labels else ("Job", labels.get(_JOB_LABEL, ""))
        pods.setdefault(of, []).append(pod)
    jobs = []
    for kind, name in {**bodies, **known}:
        workload = known.get((kind, name), {})
        jobs.append(
            Job(
                kind=kind,
                team=team,
                name=name,
                body=bodies.get((kind, name), {}),
                workload=workload,
                pods=_pods(pods.get((kind, name), [])),
                position=positions.get(name_of(workload), 0),
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


def owner_of(workload: Object) -> tuple[str, str]:
    """The kind and name of the job of a Workload."""
    owners = workload["metadata"].get("ownerReferences") or [{}]
    owner = next((item for item in owners if item.get("controller")), owners[0])
    return str(owner.get("kind") or "Workload"), str(owner.get("name") or name_of(workload))


def name_of(body: Object) -> str:
    return str((body.get("metadata") or {}).get("name") or "")


def _positions(workloads: Iterable[Object]) -> dict[str, int]:
    """By the name of a Workload that waits, its place among those of its LocalQueue, which is the team's only one.

    Kueue takes them by priority, then by age.
    https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#queueing-strategy
    """
    queues: dict[str, list[Object]] = {}
    for item in workloads:
        spec = item.get("spec") or {}
        if _true(item, "QuotaReserved") or _true(item, "Finished") or spec.get("active") is False:
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


def _pods(bodies: Iterable[Object]) -> tuple[Pod, ...]:
    """Without those that are being deleted: others take their place."""
    return tuple(Pod(body=body) for body in bodies if "deletionTimestamp" not in body["metadata"])


def _has_chips(pod_spec: Object) -> bool:
    for container in pod_spec.get("containers") or []:
        resources = container.get("resources") or {}
        if TPU in (resources.get("limits") or {}) or TPU in (resources.get("requests") or {}):
            return True
    return False


def _status(body: Object) -> Object:
    return body.get("status") or {}


def _condition(body: Object, type_: str) -> Object:
    conditions = _status(body).get("conditions") or []
    return next((item for item in conditions if item.get("type") == type_), {})


def _true(body: Object, type_: str) -> bool:
    return _condition(body, type_).get("status") == "True"


def _time(text: object) -> datetime | None:
    """https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/: RFC 3339, in UTC."""
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
