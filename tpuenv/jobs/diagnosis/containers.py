"""Why containers do not start on the nodes that their pods have, and how they ended.

Texts: Kubernetes 1.34: pkg/kubelet/images/types.go, pkg/kubelet/kuberuntime/kuberuntime_container.go,
pkg/kubelet/events/event.go, pkg/volume/util/operationexecutor; containerd's and the Cloud Storage FUSE driver's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpuenv.jobs.diagnosis.cause import WHERE, Cause, Pattern, event_words, grouped, shown
from tpuenv.jobs.diagnosis.snapshot import Snapshot
from tpuenv.jobs.job import Job, State
from tpuenv.jobs.pod import Pod
from tpuenv.kubernetes.objects import Object, condition_of, is_true, status_of

# https://kubernetes.io/docs/concepts/containers/images/#imagepullbackoff
_NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "ImageInspectError")
_CREATING = ("", "ContainerCreating", "PodInitializing")
_MOUNT = ("FailedMount", "FailedAttachVolume")
_BUILD = "`tpuenv images --build` builds those of the recipes; otherwise push it, or correct its name"

_WAITING = (
    Pattern(
        code="image-not-there",
        reasons=_NO_IMAGE,
        text=r"not found|manifest unknown|NotFound|does not exist",
        cause="image {image} cannot be pulled on {where}: the registry has no such image",
        fix="{build}",
    ),
    Pattern(
        code="image-denied",
        reasons=_NO_IMAGE,
        text=r"\b40[13]\b|denied|[Uu]nauthorized|Unauthenticated|forbidden",
        cause="image {image} cannot be pulled on {where}: the nodes may not read it",
        fix="an administrator gives the nodes' service account roles/artifactregistry.reader on that registry",
    ),
    Pattern(
        code="image-name",
        reasons=("InvalidImageName",),
        text=r"",
        cause="image {image} cannot be pulled on {where}: that is no name of an image",
        fix="correct it in the manifest, and submit the job again",
    ),
    Pattern(
        code="image-network",
        reasons=_NO_IMAGE,
        text=r"i/o timeout|no such host|connection refused|TLS handshake|deadline exceeded",
        cause="image {image} cannot be pulled on {where}: its registry cannot be reached from the nodes",
        fix="use an image of the environment's registry; other registries need the NAT (docs/air-gapped.md)",
    ),
    Pattern(
        code="image",
        reasons=(*_NO_IMAGE, "ErrImageNeverPull"),
        text=r"(?P<why>.*)",
        cause="image {image} cannot be pulled on {where} ({reason}: {why})",
        fix="{build}",
    ),
    Pattern(
        code="config-not-there",
        reasons=("CreateContainerConfigError",),
        text=r'(?P<kind>secret|configmap) "(?P<name>[^"]+)" not found',
        cause="container {container} cannot start on {where}: the {kind} {name} does not exist",
        fix="create it in the namespace of the team, or remove it from env and envFrom; the pods start by themselves",
    ),
    Pattern(
        code="config-key",
        reasons=("CreateContainerConfigError",),
        text=r"couldn't find key (?P<key>\S+) in (?P<kind>Secret|ConfigMap) (?P<name>\S+)",
        cause="container {container} cannot start on {where}: the {kind} {name} has no key {key}",
        fix="add the key to it, or correct the reference; the pods start by themselves",
    ),
    Pattern(
        code="command",
        reasons=("CreateContainerError", "RunContainerError", "StartError"),
        text=r'exec: \\?"(?P<command>[^"\\]+)\\?".*(?:not found|no such file|permission denied)',
        cause="container {container} cannot start on {where}: its image has no program {command}",
        fix="correct command in the manifest, or the image",
    ),
    Pattern(
        code="container-waits",
        text=r"(?P<why>.*)",
        cause="container {container} cannot start on {where}: {reason}: {why}",
        fix="correct what it names, and submit the job again",
    ),
)

# Events about pods whose containers wait for what is around them.
_AROUND = (
    Pattern(
        code="bucket-denied",
        reasons=_MOUNT,
        text=r'for volume "(?P<volume>[^"]+)".*(?:PermissionDenied|storage\.objects\.\w+|Unauthenticated)',
        cause="volume {volume} cannot be mounted on {where}: the job's service account may not read the bucket",
        fix="use the team's service account with the team's own bucket (`tpuenv render` shows both), or let an "
        "administrator grant the account access to this one",
    ),
    Pattern(
        code="bucket-not-there",
        reasons=_MOUNT,
        text=r'for volume "(?P<volume>[^"]+)".*(?:bucket does not exist|bucket doesn\'t exist|desc = NotFound)',
        cause="volume {volume} cannot be mounted on {where}: its bucket does not exist",
        fix="correct bucketName in the job's volumes; `tpuenv render` shows the team's bucket",
    ),
    Pattern(
        code="volume-not-there",
        reasons=_MOUNT,
        text=r'for volume "(?P<volume>[^"]+)".*(?P<kind>secret|configmap) "(?P<name>[^"]+)" not found',
        cause="volume {volume} cannot be mounted on {where}: the {kind} {name} does not exist",
        fix="create it in the namespace of the team, or remove the volume; the pods start by themselves",
    ),
    Pattern(
        code="volume",
        reasons=_MOUNT,
        text=r"(?P<why>.*)",
        cause="a volume cannot be mounted on {where}: {why}",
        fix="correct the volume, or what it names, and submit the job again",
    ),
    Pattern(
        code="sandbox",
        reasons=("FailedCreatePodSandBox", "FailedCreatePodContainer", "NetworkNotReady"),
        text=r"(?P<why>.*)",
        cause="the network of the pod cannot be made on {where}: {why}",
        fix="wait some minutes; if it stays, an administrator replaces that node",
    ),
)

# Why a pod was stopped by something else than its program.
# https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
_DISRUPTED = "DisruptionTarget"

_ENDINGS = {
    "OOMKilled": "the program needs more memory than its limit or its host has: load less at once, or raise the limit",
    "137": "it was killed from outside (SIGKILL), often for memory: read its last lines, and the node's",
    "139": "the program read memory that is not its own (SIGSEGV), often of two libraries that do not fit together",
    "134": "the program stopped itself (SIGABRT): its last lines say why",
    "143": "it was asked to end (SIGTERM): its node went away, or it was cancelled",
    "126": "the image's program may not be executed: correct its permissions, or command in the manifest",
    "127": "the image has no such program: correct command in the manifest, or the image",
}


def waiting_causes(snapshot: Snapshot, *, build: str = "") -> list[Cause]:
    """Of pods that have a node, or need none to be known as wrong: why their containers do not start.

    `build` is how to build the job's image.
    """
    return grouped(snapshot.job, (item for pod in snapshot.job.pods for item in _waiting(snapshot, pod, build)))


def _waiting(snapshot: Snapshot, pod: Pod, build: str) -> Iterator[tuple[Pod, str, str, str, str]]:
    for status, state in pod.containers:
        waiting = state.get("waiting") or {}
        reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
        if reason in (*_CREATING, "CrashLoopBackOff"):
            continue
        names = {
            "where": WHERE,
            "image": shown(status.get("image")),
            "container": shown(status.get("name")),
            "reason": shown(reason),
            "build": build or _BUILD,
        }
        for pattern in _WAITING:
            if known := pattern.cause_of(reason, message, **names):
                yield pod, pattern.code, *known, f"Pod {pod.name}: {shown(reason)}: {shown(message)}"
                break
    if pod.phase != "Pending" or pod.unschedulable:
        return
    for event in reversed(snapshot.events):
        if (event.get("involvedObject") or {}).get("name") != pod.name or event.get("type") != "Warning":
            continue
        for pattern in _AROUND:
            if known := pattern.cause_of(str(event.get("reason")), str(event.get("message") or ""), where=WHERE):
                yield pod, pattern.code, *known, event_words(event)
                return


def ended_causes(job: Job) -> Iterator[Cause]:
    """How the first pod to fail ended, and how many others did."""
    failed = failed_pods(job)
    if not failed:
        return
    pod, ended = failed[0]
    others = f", and {len(failed) - 1} more after it" if len(failed) > 1 else ""
    reason = str(status_of(pod.body).get("reason") or "")
    disrupted = condition_of(pod.body, _DISRUPTED) if is_true(pod.body, _DISRUPTED) else {}
    evidence = f"Pod {pod.name}: {exit_words(ended)}" if ended else f"Pod {pod.name}: {pod.phase}"
    if reason == "Evicted":
        why = shown(status_of(pod.body).get("message")).rstrip(".")
        fix = "write less to its disk, or ask for more in its requests, and submit it again"
        yield Cause(code="evicted", cause=f"{pod.place} was evicted by its node: {why}", fix=fix, evidence=(evidence,))
    elif disrupted or reason in ("Terminated", "NodeShutdown", "Shutdown", "NodeLost"):
        why = shown(disrupted.get("message") or status_of(pod.body).get("message") or reason).rstrip(".")
        again = "maintenance and Spot take nodes back, and it goes on from its last checkpoint"
        yield Cause(
            code="node-gone",
            cause=f"{pod.place} lost its node{others} ({why})",
            fix=f"submit it again, with more restarts: {again}" if job.state == State.FAILED else f"wait: {again}",
            evidence=(evidence,),
        )
    else:
        yield Cause(
            code="crash",
            cause=f"{pod.place} ended with {exit_words(ended)}{others}" if ended else f"{pod.place} failed{others}",
            fix=_fix_of(ended),
            evidence=(evidence,),
            pod=pod,
        )


def _fix_of(ended: Object) -> str:
    """What to do about a container that ended so."""
    known = _ENDINGS.get(str(ended.get("reason"))) or _ENDINGS.get(str(ended.get("exitCode")))
    return known or "read its last lines, correct the program, and submit it again"


def loop_causes(job: Job) -> list[Cause]:
    """Containers that end and start again on their node."""

    def looping() -> Iterator[tuple[Pod, str, str, str, str]]:
        for pod in job.pods:
            for status, state in pod.containers:
                if (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff":
                    ended = (status.get("lastState") or {}).get("terminated") or {}
                    times = int(status.get("restartCount") or 0)
                    cause = f"container {shown(status.get('name'))} ends again and again on {WHERE}, {times} times"
                    with_code = f", with {exit_words(ended)}" if ended else ""
                    yield pod, "crash-loop", cause + with_code, _fix_of(ended), f"Pod {pod.name}: CrashLoopBackOff"

    return grouped(job, looping())


def exit_words(ended: Object) -> str:
    """ "exit code 137 (OOMKilled)" """
    reason = str(ended.get("reason") or "")
    return f"exit code {ended.get('exitCode')}" + (f" ({shown(reason)})" if reason not in ("", "Error") else "")


def failed_pods(job: Job) -> list[tuple[Pod, Object]]:
    """The pods with a container that failed, and how it ended; the first to fail comes first."""
    failed = []
    for pod in job.pods:
        endings = [state["terminated"] for _, state in pod.containers if "terminated" in state]
        ended = next((item for item in endings if item.get("exitCode")), None)
        if ended is not None or pod.phase == "Failed":
            failed.append((pod, ended or {}))
    return sorted(failed, key=lambda item: (str(item[1].get("finishedAt") or "9"), item[0].slice, item[0].host))
