"""The causes, in the order in which they decide: what is first holds the job, whatever follows."""

from __future__ import annotations

from collections.abc import Iterator

from tpuenv.jobs.diagnosis.cause import Cause, event_words, places
from tpuenv.jobs.diagnosis.containers import ended_causes, loop_causes, waiting_causes
from tpuenv.jobs.diagnosis.creation import creation_causes
from tpuenv.jobs.diagnosis.queues import queue_causes, wrong_causes
from tpuenv.jobs.diagnosis.scheduling import scheduling_causes
from tpuenv.jobs.diagnosis.snapshot import Snapshot
from tpuenv.jobs.diagnosis.stuck import stuck_causes
from tpuenv.jobs.job import WITH_PODS, Job, State
from tpuenv.jobs.pod import Pod
from tpuenv.kubernetes.objects import Object
from vocabulary.printable import counted

# JobSet 0.12.0, pkg/constants; batch Jobs: pkg/controller/job/job_controller.go; KubeRay 1.7.0: rayjob_types.go
_ENDS = {
    "ReachedMaxRestarts": "it has used up its restarts",
    "FailedJobs": "its failure policy allows no restart",
    "FailJobSetFailurePolicyAction": "its failure policy ends it for this failure",
    "BackoffLimitExceeded": "its pods failed more often than backoffLimit allows",
    "DeadlineExceeded": "it ran longer than activeDeadlineSeconds allows",
    "PodFailurePolicy": "its pod failure policy ends it for this failure",
    "AppFailed": "its program failed in Ray",
    "SubmissionFailed": "its program could not be submitted to Ray",
    "JobStatusCheckTimeoutExceeded": "Ray's head did not answer KubeRay any more",
}
_TOO_LONG = "raise activeDeadlineSeconds, and submit it again"


def diagnose(snapshot: Snapshot, *, build: str = "") -> list[Cause]:
    """Why the job does not run, the cause that decides first; one that says so where nothing keeps it.

    `build` is how to build the job's image. A pure function of what was read.
    """
    return list(_distinct(_causes(snapshot, build)))


def obstacles(job: Job, *, events: tuple[Object, ...] = (), build: str = "") -> list[Cause]:
    """The causes that a job itself shows, and its events, without the queues; none where nothing keeps it."""
    causes = diagnose(Snapshot(job=job, events=events), build=build)
    return [cause for cause in causes if cause.code not in _NO_OBSTACLE]


_NO_OBSTACLE = ("runs", "succeeded", "starting", "no-pods-yet", "not-seen", "not-decided")


def _causes(snapshot: Snapshot, build: str) -> Iterator[Cause]:
    job = snapshot.job
    if (job.body.get("metadata") or {}).get("deletionTimestamp"):
        yield Cause(code="deleted", cause="it is being deleted", fix="wait: its pods are being stopped")
    if job.state == State.SUCCEEDED:
        yield Cause(code="succeeded", cause="it succeeded, and nothing is to be done")
    elif job.state == State.FAILED:
        yield from _failed(job)
    elif job.state in (State.WAITING, State.SUSPENDED):
        yield from queue_causes(snapshot)
    elif job.state == State.STUCK:
        yield from stuck_causes(snapshot)
    else:
        yield from _admitted(snapshot, build)


def _failed(job: Job) -> Iterator[Cause]:
    end = job.failure
    why = _ENDS.get(str(end.get("reason")), "")
    evidence = f"{job.kind}: {end.get('reason')}: {job.end_message}"
    if end.get("reason") == "DeadlineExceeded":
        yield Cause(code="deadline", cause=why, fix=_TOO_LONG, evidence=(evidence,))
    ended = list(ended_causes(job))
    for cause in ended:
        words = f"{cause.cause}, and {why}" if why else cause.cause
        yield Cause(code=cause.code, cause=words, fix=cause.fix, evidence=(*cause.evidence, evidence), pod=cause.pod)
    if ended or end.get("reason") == "DeadlineExceeded":
        return
    yield Cause(
        code="failed",
        cause=job.end_message or "it failed",
        fix="its pods are gone, and their logs are in Cloud Logging; read them, and submit it again",
        evidence=(evidence,),
    )


def _admitted(snapshot: Snapshot, build: str) -> Iterator[Cause]:
    job = snapshot.job
    unscheduled = scheduling_causes(snapshot)
    stuck = any(cause.code == "no-node" for cause in unscheduled)
    causes = [
        *creation_causes(snapshot),
        *waiting_causes(snapshot, build=build),
        *(wrong_causes(snapshot) if stuck else ()),
        *unscheduled,
        *loop_causes(job),
    ]
    ended = list(ended_causes(job))
    if job.state == State.RUNNING and not causes:
        yield _runs(job)
    yield from (*causes, *ended)
    if causes or ended or job.state == State.RUNNING:
        return
    if job.pods:
        yield _partly(job)
    else:
        yield from _without_pods(snapshot)


def _runs(job: Job) -> Cause:
    used = f", after {counted(job.restarts, 'restart')}" if job.restarts else ""
    noun = "host" if job.slices else "pod"
    run = f"all {counted(job.hosts, noun)} run" if job.hosts > 1 else f"its {noun} runs"
    return Cause(code="runs", cause=f"{run}{used}")


def _partly(job: Job) -> Cause:
    """Which hosts do not run, where nothing says why."""
    waiting = [pod for pod in job.host_pods if not pod.ready]
    cause = f"only {job.running} of {counted(job.hosts, 'host')} run"
    if waiting:
        cause += f"; not ready: {places(job, waiting)}"
    if missing := job.hosts - len({(pod.slice, pod.host) for pod in job.host_pods}):
        cause += f"; {counted(missing, 'host')} without a pod so far"
    evidence = tuple(f"Pod {pod.name} ({pod.place}): {_progress(pod)}" for pod in waiting[:_MOST_PODS])
    return Cause(code="starting", cause=cause, fix="wait some minutes, then ask again", evidence=evidence)


_MOST_PODS = 8


def _progress(pod: Pod) -> str:
    """ "Pending, ContainerCreating" """
    reasons = [str((state.get("waiting") or {}).get("reason") or "") for _, state in pod.containers]
    return ", ".join(filter(None, (pod.phase, *dict.fromkeys(reasons))))


def _without_pods(snapshot: Snapshot) -> Iterator[Cause]:
    job = snapshot.job
    if job.kind not in WITH_PODS:
        cause = f"it is admitted; tpuenv does not know the pods of a {job.kind}"
        fix = f"`kubectl describe {job.kind.lower()} {job.name} -n {job.team}` says how far it is"
        yield Cause(code="no-pods-yet", cause=cause, fix=fix)
        return
    warnings = [event_words(item) for item in snapshot.events if item.get("type") == "Warning"]
    yield Cause(
        code="no-pods-yet",
        cause="it has its slices, and its pods are not created yet",
        fix="wait a minute, then ask again",
        evidence=tuple(warnings[-2:]),
    )


def _distinct(causes: Iterator[Cause]) -> Iterator[Cause]:
    seen = set()
    for cause in causes:
        if str(cause) not in seen:
            seen.add(str(cause))
            yield cause
