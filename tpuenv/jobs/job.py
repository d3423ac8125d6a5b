"""A job in the cluster: its state, in what place it waits, and its hosts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from tpuenv.jobs import ray
from tpuenv.jobs.parts import Part, parts_of
from tpuenv.jobs.pod import HEAD, SUBMITTER, Pod
from tpuenv.kubernetes.objects import Object, condition_of, is_true, status_of
from vocabulary.keys import POOL_GROUP_LABEL, TPU
from vocabulary.printable import counted
from vocabulary.quantity import parse

# The kinds whose pods are known by their labels. Of others only what Kueue says of them is known.
WITH_PODS = ("JobSet", "Job", "RayJob", "RayCluster")


# So long a Job may wait before it replaces a pod that failed; after one that was refused, a minute (Kubernetes 1.34,
# pkg/controller/job/job_controller.go: MaxJobPodFailureBackOff, MaxJobApiBackOff). JobSet and KubeRay wait less.
STUCK_AFTER = timedelta(minutes=10)


class State(str, Enum):
    """How far a job is."""

    WAITING = "waiting"  # for quota, or for Google to find machines
    SUSPENDED = "suspended"  # Kueue has given it up: nothing starts it but a person
    ADMITTED = "admitted"  # it has its quota, and no pods yet
    STUCK = "stuck"  # it has its quota, and lacks pods for so long that they are not on their way
    STARTING = "starting"  # not all of its hosts run
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    @property
    def is_end(self) -> bool:
        return self in (State.SUCCEEDED, State.FAILED)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A JobSet, Job, RayJob or RayCluster. `body` is empty where only Kueue's Workload was read, and that where Kueue
    has not seen the job yet. `leaving` are pods that are being deleted: others take their place. `position` is its
    place in its team's queue, from 1, and 0 if it does not wait in it. `seen` is when all of it was read.
    """

    kind: str
    team: str
    name: str
    body: Object
    workload: Object
    pods: tuple[Pod, ...] = ()
    leaving: tuple[Pod, ...] = ()
    position: int = 0
    seen: datetime | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.team}/{self.name}"

    @property
    def state(self) -> State:
        """https://kueue.sigs.k8s.io/docs/concepts/workload/, the conditions of JobSets and Jobs, and tpuenv.jobs.ray"""
        succeeded = ray.success(self.body) if self.kind == "RayJob" else None
        if is_true(self.body, "Failed") or succeeded is False:
            return State.FAILED
        if is_true(self.body, "Completed") or is_true(self.body, "Complete") or succeeded:
            return State.SUCCEEDED
        if finished := condition_of(self.workload, "Finished"):
            return State.FAILED if "Failed" in str(finished.get("reason")) else State.SUCCEEDED
        if not is_true(self.workload, "Admitted"):
            given_up = (self.workload.get("spec") or {}).get("active") is False
            return State.SUSPENDED if given_up else State.STUCK if self.stuck_for else State.WAITING
        submitted = self.kind != "RayJob" or ray.runs(self.body)
        if self.kind in WITH_PODS and self.hosts and self.running == self.hosts and submitted:
            return State.RUNNING
        if self.stuck_for:
            return State.STUCK
        return State.STARTING if self.pods else State.ADMITTED

    @property
    def stuck_for(self) -> timedelta | None:
        """How long it has held its quota for nothing; None where that is not so, or its pods may be on their way.

        Kueue gives quota back when a job that it stopped has no pods any more, or when it has ended: but for
        https://github.com/kubernetes-sigs/kueue/issues/14811 and RayJobs that KubeRay did not validate.
        """
        reserved, evicted, ready = (condition_of(self.workload, of) for of in ("QuotaReserved", "Evicted", "PodsReady"))
        is_evicted = evicted.get("status") == "True"
        if reserved.get("status") != "True" or is_true(self.workload, "Finished"):
            return None
        if not is_evicted and (not self._lacks_pods or ready.get("status") == "True"):
            return None
        said = [item.get("lastTransitionTime") for item in (reserved, evicted if is_evicted else ready)]
        moved = [*(pod.created for pod in self.pods), *(pod.deleted for pod in self.leaving)]
        times = [time for time in map(_time, (*said, *moved)) if time] if any(said) else []
        since = self.seen - max(times) if self.seen and times else None
        return since if since and since >= STUCK_AFTER else None

    @property
    def _lacks_pods(self) -> bool:
        """Whether it is admitted, and pods are missing that neither wait for a node nor for a part before theirs."""
        if self.kind not in WITH_PODS or not is_true(self.workload, "Admitted"):
            return False
        spec = self.body.get("spec") or {}
        parts = spec.get("replicatedJobs") or [] if self.kind == "JobSet" else []
        order = (spec.get("startupPolicy") or {}).get("startupPolicyOrder")
        one_by_one = order == "InOrder" or any(part.get("dependsOn") for part in parts)
        waits = any(pod.unschedulable for pod in self.pods) or (one_by_one and bool(self.pods))
        return self.missing > 0 and not waits

    @property
    def program_part(self) -> str:
        """The part whose log is the program's; "" is the part with the chips."""
        return {"RayJob": SUBMITTER, "RayCluster": HEAD}.get(self.kind, "")

    @property
    def parts(self) -> list[Part]:
        """The kinds of pods that it asks for."""
        return parts_of(self.kind, self.body, self.workload)

    @property
    def hosts(self) -> int:
        """How many pods with chips it has when it runs; all its pods if none has chips."""
        with_chips = [part for part in self.parts if part.has_chips]
        return sum(part.replicas * part.size for part in with_chips or self.parts)

    @property
    def slices(self) -> int:
        return sum(part.replicas for part in self.parts if part.has_chips)

    @property
    def group(self) -> str:
        """The pool group that it runs on, or asks for; "" if neither says it."""
        for part in self.parts:
            if part.has_chips and (group := part.selector.get(POOL_GROUP_LABEL)):
                return str(group)
        flavors = (item.get("flavors") or {} for item in self.assignments)
        return next((str(given[TPU]) for given in flavors if TPU in given), "")

    @property
    def assignments(self) -> list[Object]:
        """What Kueue has given each pod set; nothing while it waits."""
        return list((status_of(self.workload).get("admission") or {}).get("podSetAssignments") or [])

    @property
    def chips(self) -> int:
        """How many of its quota are TPU chips; 0 while it waits."""
        return sum(int(parse((item.get("resourceUsage") or {}).get(TPU, 0))) for item in self.assignments)

    @property
    def host_pods(self) -> tuple[Pod, ...]:
        """By slice and host, and where one was replaced, the newer later."""
        pods = tuple(pod for pod in self.pods if pod.has_chips) or tuple(pod for pod in self.pods if not pod.is_beside)
        return tuple(sorted(pods, key=lambda pod: (pod.slice, pod.host, pod.created, pod.name)))

    @property
    def missing(self) -> int:
        """Of the hosts, how many have no pod. One that has failed is none: a Job keeps it, and makes another."""
        return max(max(self.hosts, 1) - sum(pod.phase != "Failed" for pod in self.host_pods), 0)

    @property
    def running(self) -> int:
        """Of the hosts, how many run."""
        return sum(pod.ready for pod in self.host_pods)

    def pod(self, *, slice: int, host: int, part: str = "") -> Pod | None:
        """The pod of a host; of another part of the job than that with the chips where `part` names one."""
        pods = [pod for pod in self.pods if pod.part == part] if part else self.host_pods
        here = [pod for pod in pods if (pod.slice, pod.host) == (slice, host)]
        return here[-1] if here else None

    @property
    def all_started(self) -> bool:
        """Whether every host runs, or has run."""
        return len(self.host_pods) >= self.hosts and all(pod.started for pod in self.host_pods)

    @property
    def restarts(self) -> int:
        if self.kind == "RayJob":
            return min(int(status_of(self.body).get("failed") or 0), self.most_restarts)
        return int(status_of(self.body).get("restarts") or 0)

    @property
    def restarts_used(self) -> int:
        """How many of them count: those after an interruption need not."""
        used = status_of(self.body).get("restartsCountTowardsMax")
        return self.restarts if used is None else int(used)

    @property
    def most_restarts(self) -> int:
        """After how many that count it fails."""
        spec = self.body.get("spec") or {}
        limit = spec if self.kind == "RayJob" else spec.get("failurePolicy") or {}
        return int(limit.get("backoffLimit" if self.kind == "RayJob" else "maxRestarts") or 0)

    @property
    def created(self) -> datetime | None:
        return _time(((self.body or self.workload).get("metadata") or {}).get("creationTimestamp"))

    @property
    def failure(self) -> Object:
        """The condition of a job that has failed; of a RayJob its status, which has a reason and a message too."""
        if self.kind == "RayJob" and ray.success(self.body) is False:
            return status_of(self.body)
        return condition_of(self.body, "Failed") or condition_of(self.workload, "Finished")

    @property
    def end_message(self) -> str:
        """Why it has failed, in the words of JobSet or KubeRay."""
        if self.kind == "RayJob" and (message := ray.end_message(self.body)):
            return message
        return str(self.failure.get("message") or self.failure.get("reason") or "")

    @property
    def words(self) -> str:
        """The state for people: "running on 4 hosts", "starting (2 of 4 hosts run)"."""
        if self.state == State.STARTING and self.hosts:
            return f"starting ({self.running} of {counted(self.hosts, 'host')} run)"
        if self.state == State.RUNNING:
            return f"running on {counted(self.hosts, 'host')}"
        if self.state == State.STUCK and self.stuck_for:
            return f"stuck for {span(self.stuck_for)}"
        return str(self.state.value)


def span(time: timedelta) -> str:
    """ "45s", "12m", "3h", "4d" """
    seconds = max(int(time.total_seconds()), 0)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size or (unit == "d" and seconds >= size):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _time(text: object) -> datetime | None:
    """https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/: RFC 3339, in UTC."""
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
