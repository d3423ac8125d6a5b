"""Why Kueue does not admit a job: its queue, its quota, what stopped it, what it waits for besides quota.

Texts and reasons: Kueue 0.19.2: apis/kueue/v1beta2/workload_types.go, pkg/controller/core/workload_controller.go,
pkg/scheduler/preemption/preemption.go, pkg/controller/admissionchecks/provisioning; of Google's part
https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from admission import NotAWorkload, Reason, Verdict, explain
from tpuenv.failure import Failed
from tpuenv.jobs.diagnosis.cause import Cause, Pattern, condition_words, event_words, shown
from tpuenv.jobs.diagnosis.snapshot import Snapshot
from tpuenv.jobs.job import Job
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.objects import Object, condition_of, is_true, name_of, status_of
from vocabulary.keys import LOCAL_QUEUE, QUEUE_LABEL, TPU
from vocabulary.printable import counted, listed
from vocabulary.stop_policy import HOLD, stopped

_MOST_JOBS = 5

_AGAIN = "wait: it is queued again, and goes on from its last checkpoint when it starts"
_DEPLOY = "an administrator runs `tpuenv deploy`"
_UNLESS_HELD = " unless HOLD_QUEUES=true"

# By the reason of the condition Evicted, or its beginning.
_EVICTED = {
    "PodsReadyTimeout": (
        "Kueue stopped it, because not all of its hosts were ready in time (waitForPodsReady)",
        "it is queued again; if that repeats, ask `tpuenv why` while its pods wait",
    ),
    "ClusterQueueStopped": ("Kueue stopped it, because an administrator has stopped the queue", _DEPLOY),
    "LocalQueueStopped": ("Kueue stopped it, because an administrator has stopped the queue", _DEPLOY),
    "AdmissionCheck": ("Kueue stopped it, because an admission check was withdrawn", _AGAIN),
    "NodeFailures": ("Kueue stopped it, because a node of its slice failed", _AGAIN),
}
_GIVEN_UP = {
    "DeactivatedDueToRequeuingLimitExceeded": "its hosts were not ready in time too often",
    "DeactivatedDueToAdmissionCheck": "an admission check refused it",
}

# By the reason of the condition Preempted: why the other job was given its place.
_PREEMPTED = {
    "InClusterQueue": "which has a higher priority",
    "InCohortReclamation": "whose team took back its own slices",
    "InCohortFairSharing": "whose team had less than its share",
    "InCohortReclaimWhileBorrowing": "which has a higher priority, and whose team borrows",
}

# Messages of the admission check that asks the Dynamic Workload Scheduler for machines.
_CHECKS = (
    Pattern(
        code="machines-quota",
        text=r"(?i)quota",
        cause="the Dynamic Workload Scheduler cannot give it machines: the project's Google quota is used up",
        fix="an administrator asks for more (preemptible) TPU quota in IAM & Admin > Quotas",
    ),
    Pattern(
        code="waits-for-machines",
        text=r"not enough resources available|ResourcePoolExhausted|Waiting for resources",
        cause="it has its quota, and waits in the queue of the Dynamic Workload Scheduler: Google has no free "
        "machines of this type yet",
        fix="wait, it costs nothing so far; or submit it to a pool group with other capacity",
    ),
    Pattern(
        code="check-inactive",
        text=r"the check is not active",
        cause="it has its quota, and the admission check {check} is not set up",
        fix=_DEPLOY,
    ),
    Pattern(
        code="machines-retry",
        text=r"Retrying after (?:failure|booking expired)(?:: (?P<why>.*))?",
        cause="the Dynamic Workload Scheduler could not give it machines, and Kueue asks again: {why}",
        fix="wait; or submit it to a pool group with other capacity",
    ),
    Pattern(
        code="waits-for-machines",
        text=r"",
        cause="it has its quota, and waits for the admission check {check}: Google looks for machines",
        fix="wait, it costs nothing so far; or submit it to a pool group with other capacity",
    ),
)

# What to do about what the rules of admission find, where that is not a part of the reason.
_FIXES = {
    "unknown-queue": "set the label {label} to {queues}, or remove it, and submit the job again",
    "no-queue": "set the label {label} to {queues}, and submit the job again",
}
_LABELS = ("wrong-accelerator", "wrong-topology", "wrong-node-label")
# Of a job that the API server has accepted these say nothing: members cannot read what they ask for.
_NOT_KNOWN = ("unknown-priority-class", "no-namespace")


def queue_causes(snapshot: Snapshot) -> Iterator[Cause]:
    """Of a job that is not admitted, the one that decides first."""
    job = snapshot.job
    if (job.workload.get("spec") or {}).get("active") is False:
        yield _given_up(job)
        return
    if takes_none := _stopped(snapshot):
        yield takes_none
        return
    wrong = list(wrong_causes(snapshot))
    yield from wrong
    if wrong:
        return
    if not job.workload:
        yield from _not_seen(snapshot)
        return
    reserved = is_true(job.workload, "QuotaReserved")
    waits = [*_checks(job)] if reserved else [*_evicted(snapshot), *_quota(snapshot)]
    yield from waits
    if not waits:
        what = "it has its quota, and Kueue is about to start it" if reserved else "Kueue has not decided yet"
        yield Cause(code="not-decided", cause=what, fix="wait a minute, then ask again")


def wrong_causes(snapshot: Snapshot) -> Iterator[Cause]:
    """What is wrong with the job itself, so that it would never run: `tpuenv check`, on the cluster as it stands."""
    job = snapshot.job
    if not job.body or not snapshot.objects or {"ClusterQueue", "ResourceFlavor"} & snapshot.unread.keys():
        return
    holding = [{"kind": "Workload", **other.workload} for other in snapshot.others if _is_other(other, job)]
    try:
        explanation = explain([*snapshot.objects, *holding], job.body, namespace=job.team)
    except NotAWorkload:
        return
    condition = condition_of(job.workload, "QuotaReserved")
    evidence = (condition_words("Workload", condition),) if condition.get("status") == "False" else ()
    for reason in explanation.reasons:
        if reason.verdict == Verdict.NEVER and reason.code not in _NOT_KNOWN:
            where = f"{reason.where}: " if reason.where else ""
            cause = where + reason.what + (", which no slice of its queue has" if reason.code in _LABELS else "")
            yield Cause(code=reason.code, cause=cause, fix=_fix(snapshot, reason), evidence=evidence)


def _is_other(other: Job, job: Job) -> bool:
    """Whether it is another job, and Kueue has seen it."""
    return bool(other.workload) and (other.kind, other.team, other.name) != (job.kind, job.team, job.name)


def _fix(snapshot: Snapshot, reason: Reason) -> str:
    here = [name_of(item) for item in snapshot.of_kind("LocalQueue")] or [LOCAL_QUEUE]
    queues = LOCAL_QUEUE if LOCAL_QUEUE in here else " or ".join(here)
    if reason.code in _FIXES:
        return _FIXES[reason.code].format(label=QUEUE_LABEL, queues=queues)
    return f"{reason.fix}, and submit it again" if reason.fix else "correct it, and submit it again"


def _given_up(job: Job) -> Cause:
    condition = condition_of(job.workload, "Evicted")
    reason = str(condition.get("reason") or "")
    why = next((words for key, words in _GIVEN_UP.items() if reason.startswith(key)), "")
    again = f"`tpuenv cancel {job.name}`, and submit it again: Kueue does not start it by itself"
    return Cause(
        code="given-up",
        cause=f"Kueue has given it up: {why}" if why else "it was deactivated (spec.active of its Workload is false)",
        fix=f"mend that, then {again}" if why else again,
        evidence=(condition_words("Workload", condition),) if condition else (),
    )


def stopped_queue(cluster: Cluster, job: Job) -> Cause | None:
    """That the queue of a job takes no jobs; None where it does, or that cannot be read at once."""
    quick = cluster.with_little_patience()
    try:
        local = quick.find("LocalQueue", job.team, _queue_of(job)) or {}
        name = str((local.get("spec") or {}).get("clusterQueue") or "")
        queue = (quick.find("ClusterQueue", "", name) if name else None) or {}
    except Failed:
        return None
    return _stopped(Snapshot(job=job, objects=(local, queue)))


def _stopped(snapshot: Snapshot) -> Cause | None:
    """The queue of the job, where it takes no jobs."""
    name = _queue_of(snapshot.job)
    local = snapshot.named("LocalQueue", name)
    spec = local.get("spec") or {}
    queue = snapshot.named("ClusterQueue", str(spec.get("clusterQueue") or ""))
    for item in (queue, local):
        condition = condition_of(item, "Active")
        if condition.get("status") != "False":
            continue
        what = f"{item['kind']} {name_of(item)}"
        policy = (item.get("spec") or {}).get("stopPolicy") or "None"
        why = stopped(policy) if policy != "None" else f"takes no jobs ({shown(condition.get('message'))})"
        return Cause(
            code="queue-stopped" if policy != "None" else "queue-inactive",
            cause=f"its queue {what} {why}: nothing starts there",
            fix=f"{_DEPLOY}, which starts it again{_UNLESS_HELD if policy == HOLD else ''}",
            evidence=(condition_words(what, condition),),
        )
    return None


def _queue_of(job: Job) -> str:
    """The LocalQueue of a job: of its Workload, its label, or the one that jobs without a label get."""
    labels = (job.body.get("metadata") or {}).get("labels") or {}
    return str((job.workload.get("spec") or {}).get("queueName") or labels.get(QUEUE_LABEL) or LOCAL_QUEUE)


def _not_seen(snapshot: Snapshot) -> Iterator[Cause]:
    warnings = [item for item in snapshot.events if item.get("type") == "Warning"]
    for event in reversed(warnings):
        if (event.get("involvedObject") or {}).get("kind") == snapshot.job.kind:
            why = f"Kueue makes no Workload of it: {shown(event.get('message'))}"
            fix = "correct what it names, and submit the job again"
            yield Cause(code="no-workload", cause=why, fix=fix, evidence=(event_words(event),))
            return
    yield Cause(
        code="not-seen",
        cause="Kueue has not seen it yet",
        fix="wait a minute; if it stays, an administrator looks at the pods in namespace kueue-system",
    )


def _checks(job: Job) -> Iterator[Cause]:
    """What admission checks wait for: with flex-start and queued provisioning, Google's machines."""
    for check in status_of(job.workload).get("admissionChecks") or []:
        message, name = str(check.get("message") or ""), shown(check.get("name"))
        if check.get("state") == "Ready":
            continue
        evidence = f"Workload: admission check {name} {shown(check.get('state'))}: {shown(message) or 'no message'}"
        if check.get("state") == "Rejected":
            yield Cause(
                code="check-rejected",
                cause=f"the admission check {name} refused it: {shown(message)}",
                fix="mend that, then submit it again",
                evidence=(evidence,),
            )
            continue
        for pattern in _CHECKS:
            if known := pattern.cause_of("", message, check=name, why=shown(message)):
                yield Cause(code=pattern.code, cause=known[0], fix=known[1], evidence=(evidence,))
                break


def _evicted(snapshot: Snapshot) -> Iterator[Cause]:
    job = snapshot.job
    condition = condition_of(job.workload, "Evicted")
    if condition.get("status") != "True":
        return
    reason, evidence = str(condition.get("reason") or ""), (condition_words("Workload", condition),)
    if reason == "Preempted":
        preempted = condition_of(job.workload, "Preempted")
        why = _PREEMPTED.get(str(preempted.get("reason")), "which has a higher priority or owns the slices")
        who = _preemptor(snapshot, str(condition.get("message") or preempted.get("message") or ""))
        cause = f"Kueue stopped it for {who}, {why}"
        yield Cause(code="preempted", cause=cause, fix=_AGAIN, evidence=evidence)
        return
    cause, fix = _EVICTED.get(reason, (f"Kueue stopped it ({shown(reason)})", _AGAIN))
    requeue = status_of(job.workload).get("requeueState") or {}
    if requeue.get("count"):
        cause += f", {counted(int(requeue['count']), 'time')} so far"
    if requeue.get("requeueAt"):
        fix = fix.replace("it is queued again", f"it is queued again at {shown(requeue['requeueAt'])}", 1)
    yield Cause(code="stopped", cause=cause, fix=fix, evidence=evidence)


def _preemptor(snapshot: Snapshot, message: str) -> str:
    """Who was given its place: "job urgent", or of other teams "a job of team serving".

    "Preempted to accommodate a workload (UID: ..., JobUID: ...) due to ...; preemptor path: /fleet/serving; ..."
    """
    uids = re.search(r"\(UID: (\S+), JobUID: ([^)\s]+)\)", message)
    for other in snapshot.others if uids else ():
        own = ((item.get("metadata") or {}).get("uid") for item in (other.workload, other.body))
        if uids and any(uid and uid in uids.groups() for uid in own):
            return f"job {other.name} of {'the same team' if other.team == snapshot.job.team else f'team {other.team}'}"
    path = re.search(r"preemptor path: (\S+?)(?:;|$)", message)
    team = path[1].rpartition("/")[2] if path else ""
    return f"a job of team {shown(team)}" if team and team != "UNKNOWN" else "another job"


def _quota(snapshot: Snapshot) -> Iterator[Cause]:
    """Who has the slices that it waits for, and who is before it. Without the queues, and of a job without chips, what
    Kueue says.
    """
    job = snapshot.job
    condition = condition_of(job.workload, "QuotaReserved")
    evidence = (condition_words("Workload", condition),) if condition.get("status") == "False" else ()
    flavors = _possible_flavors(snapshot)
    mates = [other for other in snapshot.others if other.team == job.team and _is_other(other, job)]
    users = [other for other in mates if _uses(other, flavors)]
    chips = _chips_by_team(snapshot, flavors)
    if not job.slices or not (users or chips):
        if message := shown(condition.get("message")) if condition.get("status") == "False" else "":
            yield Cause(code="quota", cause=message, evidence=evidence)
        return
    before = [other for other in mates if 0 < other.position < job.position]
    asked = f"{counted(job.slices, 'slice')} of {job.group}" if job.group else "its quota"
    who = [_names(users)] if users else []
    who += [f"team {team} ({words})" for team, words in chips.items() if team != job.team]
    cause = f"it waits for {asked}, in use by {' and '.join(who) or 'its team'}"
    if before:
        cause += f"; before it in the queue: {_names(sorted(before, key=lambda other: other.position), slices=False)}"
    cancel = f"wait, ask for fewer slices, or free slices with `tpuenv cancel {users[0].name}`" if users else ""
    fix = cancel or "wait, or ask for fewer slices"
    usage = (f"team {team} uses {words}" for team, words in chips.items())
    yield Cause(code="quota", cause=cause, fix=fix, evidence=(*evidence, *usage))


def _names(jobs: list[Job], *, slices: bool = True) -> str:
    names = [f"{job.name} ({counted(job.slices, 'slice')})" if slices and job.slices else job.name for job in jobs]
    return listed(list(map(shown, names)), most=_MOST_JOBS)


def _possible_flavors(snapshot: Snapshot) -> set[str] | None:
    """Those of which the job may get its slices: of its pool group, or where its pods select none, as on Autopilot,
    those without a label that they contradict. None where the flavors were not read.
    """
    job, flavors = snapshot.job, snapshot.of_kind("ResourceFlavor")
    if job.group:
        return {job.group}
    selectors = [part.selector for part in job.parts if part.has_chips]
    possible = {
        name_of(flavor)
        for flavor in flavors
        for labels in [(flavor.get("spec") or {}).get("nodeLabels") or {}]
        if all(selector.get(key, value) == value for selector in selectors for key, value in labels.items())
    }
    return possible if flavors else None


def _chips_by_team(snapshot: Snapshot, flavors: set[str] | None) -> dict[str, str]:
    """ "32 chips of tpu" in use of the flavors, or of all where they are not known, by ClusterQueue."""
    used = {}
    for queue in snapshot.of_kind("ClusterQueue"):
        if words := ", ".join(_chips_in_use(queue, flavors)):
            used[shown(name_of(queue))] = words
    return used


def _chips_in_use(queue: Object, flavors: set[str] | None) -> Iterator[str]:
    """As the status of a ClusterQueue has it."""
    for usage in status_of(queue).get("flavorsUsage") or []:
        for resource in usage.get("resources") or []:
            used = str(resource.get("total") or "0")
            if resource.get("name") == TPU and used != "0" and (flavors is None or usage.get("name") in flavors):
                yield f"{used} chips of {shown(usage.get('name'))}"


def _uses(job: Job, flavors: set[str] | None) -> bool:
    of_these = flavors is None or job.group in flavors
    return bool(job.assignments and job.slices) and not job.state.is_end and of_these
