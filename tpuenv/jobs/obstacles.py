"""Why the pods of an admitted job do not run, and who uses what a job waits for: a line for each reason."""

from __future__ import annotations

from collections.abc import Iterator

from tpuenv.jobs.job import Job
from tpuenv.jobs.pod import Pod
from tpuenv.jobs.read_jobs import read_jobs
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.objects import Object, name_of
from vocabulary.keys import TPU
from vocabulary.printable import counted, shortened

_LONGEST = 400  # characters of a message of the cluster's
_MOST_JOBS = 5

# https://kubernetes.io/docs/concepts/containers/images/#imagepullbackoff; kubelet: pkg/kubelet/images/types.go
_NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError")

# What JobSet's webhook says of the other pods of a slice until the first has a node: with exclusive placement every
# start begins so. JobSet 0.12.0: pkg/webhooks/pod_admission_webhook.go
_ON_ITS_WAY = ("follower pod node selector", "leader pod not yet scheduled")
_CREATING = ("", "ContainerCreating", "PodInitializing")


def pod_obstacles(job: Job, *, build: str = "") -> list[str]:
    """What keeps pods from running, with how many of them. `build` is how to build the job's image."""
    obstacles: dict[str, int] = {}
    for pod in job.pods:
        for text in dict.fromkeys(_of_pod(pod, build)):
            obstacles[text] = obstacles.get(text, 0) + 1
    every = len(job.pods)
    return [f"{number} of {counted(every, 'pod')}: {text}" for text, number in obstacles.items()]


def _of_pod(pod: Pod, build: str) -> Iterator[str]:
    if pod.phase == "Pending" and (why := pod.unschedulable):
        yield f"no node takes it: {_shown(why)}"
    for status, state in pod.containers:
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        reason = str(waiting.get("reason") or "")
        if reason in _NO_IMAGE:
            why = f"{reason}: {_shown(waiting.get('message'))}"
            how = build or "build and push it, or correct its name"
            yield f"image {_shown(status.get('image'))} cannot be pulled ({why}); {how}"
        elif reason not in _CREATING:
            yield f"container {_shown(status.get('name'))}: {_shown(reason)}: {_shown(waiting.get('message'))}"
        elif ended.get("exitCode"):
            yield f"container {_shown(status.get('name'))} ended with {exit_words(ended)}"


def exit_words(ended: Object) -> str:
    """ "exit code 137 (OOMKilled)" """
    reason = str(ended.get("reason") or "")
    return f"exit code {ended.get('exitCode')}" + (f" ({_shown(reason)})" if reason not in ("", "Error") else "")


def failed_pods(job: Job) -> list[tuple[Pod, Object]]:
    """The pods with a container that failed, and how it ended; the first to fail comes first."""
    failed = []
    for pod in job.pods:
        endings = [state["terminated"] for _, state in pod.containers if "terminated" in state]
        ended = next((item for item in endings if item.get("exitCode")), None)
        if ended is not None or pod.phase == "Failed":
            failed.append((pod, ended or {}))
    return sorted(failed, key=lambda item: (str(item[1].get("finishedAt") or "9"), item[0].slice, item[0].host))


def warnings_of(cluster: Cluster, job: Job) -> list[str]:
    """The warnings in the namespace's events about the Jobs and pods of a job, each once.

    Those about a JobSet itself repeat what its status says.

    https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
    """
    lines = []
    for event in cluster.all("Event", job.team, fields="type=Warning"):
        about = event.get("involvedObject") or {}
        name = str(about.get("name") or "")
        if event.get("type") == "Warning" and (name == job.name or name.startswith(f"{job.name}-")):
            reason, message = _shown(event.get("reason")), _shown(event.get("message"))
            if any(words in message for words in _ON_ITS_WAY) or about.get("kind") == "JobSet":
                continue
            lines.append(f"{_shown(about.get('kind'))}: {reason}: {message}")
    return list(dict.fromkeys(lines))


def who_uses(cluster: Cluster, job: Job) -> list[str]:
    """Who uses the chips that a job waits for: each team's ClusterQueue, and the jobs of the team itself."""
    lines = []
    for queue in cluster.all("ClusterQueue"):
        chips = _chips(queue, job.group)
        if chips:
            flavors = ", ".join(f"{number} chips of {flavor}" for flavor, number in chips.items())
            lines.append(f"team {_shown(name_of(queue))} uses {flavors}")
    running = [other for other in read_jobs(cluster, job.team) if not other.position and _uses(other, job.group)]
    names = [f"{other.name} ({counted(other.slices, 'slice')})" for other in running if other.name != job.name]
    if names:
        shown = names[:_MOST_JOBS] + ([f"{len(names) - _MOST_JOBS} more"] if len(names) > _MOST_JOBS else [])
        lines.append(f"of team {job.team}: {', '.join(map(_shown, shown))}")
    return lines


def _uses(job: Job, group: str) -> bool:
    return bool(job.assignments) and not job.state.is_end and bool(job.slices) and (not group or job.group == group)


def _chips(queue: Object, flavor: str) -> dict[str, str]:
    """In use of a flavor, or of all that have chips."""
    chips = {}
    for usage in (queue.get("status") or {}).get("flavorsUsage") or []:
        for resource in usage.get("resources") or []:
            used = str(resource.get("total") or "0")
            if resource.get("name") == TPU and used != "0" and flavor in ("", usage.get("name")):
                chips[str(usage.get("name"))] = used
    return chips


def _shown(text: object) -> str:
    return shortened(" ".join(str(text or "").split()), longest=_LONGEST)
