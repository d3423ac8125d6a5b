"""A cause with what to do about it, and patterns of texts by which a cause is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tpuenv.jobs.job import Job
from tpuenv.jobs.pod import Pod
from tpuenv.kubernetes.objects import Object
from vocabulary.printable import counted, printable, shortened

WHERE = "{where}"  # in a cause: becomes the places of its pods
_MOST_HOSTS = 8  # that are listed
_LONGEST = 400  # characters of a text of the cluster's


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Why a job does not run. `code` is stable; `pod` is the one whose log shows more, where there is one."""

    code: str
    cause: str
    fix: str = ""
    evidence: tuple[str, ...] = ()
    pod: Pod | None = None

    def __str__(self) -> str:
        return printable(f"{self.cause}; {self.fix}" if self.fix else self.cause)


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A text by which a cause is known. Groups of `text` may be named in `cause` and `fix`.

    `reasons` are those of an event or of a container that waits; none: any.
    """

    code: str
    text: str
    cause: str
    fix: str
    reasons: tuple[str, ...] = ()

    def cause_of(self, reason: str, message: str, /, **more: str) -> tuple[str, str] | None:
        """The cause and the fix, if the text is one of these. `more` are further names in both."""
        if self.reasons and reason not in self.reasons:
            return None
        match = re.search(self.text, message, re.DOTALL)
        if match is None:
            return None
        values = {
            **more,
            **{name: shown(value).rstrip(".") for name, value in match.groupdict().items() if value is not None},
        }
        return self.cause.format(**values), self.fix.format(**values)


def shown(text: object) -> str:
    """A text of the cluster's on one line, and not too long."""
    return shortened(" ".join(str(text or "").split()), longest=_LONGEST)


def condition_words(about: str, condition: Object) -> str:
    """ "Workload: QuotaReserved False (Pending): the message" """
    reason = f" ({shown(condition.get('reason'))})" if condition.get("reason") else ""
    message = f": {shown(condition.get('message'))}" if condition.get("message") else ""
    return f"{about}: {condition.get('type')} {condition.get('status')}{reason}{message}"


def event_words(event: Object) -> str:
    """ "Pod train-slice-0-0: FailedMount: the message" """
    about = event.get("involvedObject") or {}
    return f"{shown(about.get('kind'))} {shown(about.get('name'))}: {shown(event.get('reason'))}: " + shown(
        event.get("message")
    )


def places(job: Job, pods: Sequence[Pod]) -> str:
    """ "slice 0, host 2", "all 4 hosts", "slice 0, hosts 1, 3", "6 of 8 hosts (the first: slice 0, host 1)" """
    every = max(len(job.host_pods), job.hosts)
    noun = "host" if job.slices else "pod"
    if len(pods) >= every > 1:
        return f"all {counted(every, noun)}"
    if len(pods) == 1:
        return pods[0].place
    if len({(pod.part, pod.slice) for pod in pods}) == 1 and len(pods) <= _MOST_HOSTS and job.slices:
        return f"{pods[0].place.rpartition(' ')[0]}s {', '.join(str(pod.host) for pod in pods)}"
    return f"{len(pods)} of {counted(every, noun)} (the first: {pods[0].place})"


def grouped(job: Job, causes: Iterable[tuple[Pod, str, str, str, str]]) -> list[Cause]:
    """One cause for the pods that have the same; each is (pod, code, cause with WHERE in it, fix, evidence)."""
    same: dict[tuple[str, str, str], list[tuple[Pod, str]]] = {}
    for pod, code, cause, fix, evidence in causes:
        same.setdefault((code, cause, fix), []).append((pod, evidence))
    return [
        Cause(
            code=code,
            cause=cause.replace(WHERE, places(job, [pod for pod, _ in items])),
            fix=fix,
            evidence=tuple(dict.fromkeys(evidence for _, evidence in items))[:1],
            pod=items[0][0],
        )
        for (code, cause, fix), items in same.items()
    ]
