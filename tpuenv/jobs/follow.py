"""Follows a job: until every host runs, then the log of one host, then how the job ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from tpuenv.failure import INTERRUPTED, Failed, WrongArgument
from tpuenv.jobs.diagnosis.answer import last_lines
from tpuenv.jobs.diagnosis.containers import exit_words, failed_pods
from tpuenv.jobs.diagnosis.diagnose import diagnose, obstacles
from tpuenv.jobs.diagnosis.snapshot import events_of, read_snapshot
from tpuenv.jobs.job import WITH_PODS, Job, State
from tpuenv.jobs.log import Position, new_lines
from tpuenv.jobs.pod import Pod
from tpuenv.jobs.read_jobs import read_job, read_jobs
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.errors import ApiError, Unreachable
from tpuenv.terminal.colours import Tone
from tpuenv.terminal.progress import Progress
from vocabulary.printable import counted, printable

_LAST_LINES = 20  # of the log of a host that failed


@dataclass(kw_only=True)
class Follower:
    """Follows one job. `slice`, `host` and `part` say whose log is shown; `build` is how to build the job's image.
    With `until_it_runs`, which is for a RayCluster, it ends when every host runs.

    What is said of the job goes to `progress`, and only the log itself to standard output.
    """

    cluster: Cluster
    team: str
    kind: str
    name: str
    progress: Progress
    slice: int = 0
    host: int = 0
    part: str = ""
    build: str = ""
    until_it_runs: bool = False
    clock: Callable[[], float] = time.monotonic
    _said: set[str] = field(default_factory=set)  # of this start of the job
    _position: Position = field(default_factory=Position)
    _pod: str = ""  # the uid of the pod whose log is shown
    _before: Job | None = None  # as it was read last
    _lost: float | None = None  # since when the cluster does not answer, in seconds of the clock

    def __post_init__(self) -> None:
        self.cluster = replace(self.cluster, say=self._say)

    def follow(self) -> int:
        """Until the job ends: 0 if it succeeded, 1 if it failed or was deleted. Raises Failed."""
        while True:
            began = self.clock()
            try:
                job = read_job(self.cluster, team=self.team, kind=self.kind, name=self.name)
                reading = self.clock() - began
                code = self._next(job)
            except Unreachable as error:
                self._wait_for_answer(error)
                continue
            self._lost = None
            if code is not None:
                return code
            # A job of thousands of pods is megabytes to read.
            time.sleep(max(self.cluster.patience.poll, 3 * reading))

    def _next(self, job: Job | None) -> int | None:
        """One step; the exit code if it was the last."""
        if job is None:
            self._say(f"{self.kind} {self.team}/{self.name} was deleted: it does not run any more", Tone.BAD)
            return 1
        self._notice_a_new_start(job)
        if self.until_it_runs and job.state == State.RUNNING:
            self._say(f"{job} is {job.words}, and holds its slices until it is deleted. Its dashboard:", Tone.GOOD)
            self._say(f"  kubectl port-forward --namespace {job.team} service/{job.name}-head-svc 8265")
            if "authOptions" in job.body["spec"]:
                template = "'{{.data.auth_token | base64decode}}'"
                self._say(f"Its token: kubectl get secret --namespace {job.team} {job.name} --template {template}")
            return 0
        pod = job.pod(slice=self.slice, host=self.host, part=self.part)
        if pod and pod.started and (pod.uid == self._pod or job.all_started or job.state.is_end):
            self._show_log(job, pod)
            if job.state.is_end:
                return self._ended(job)
            self._say_obstacles(job)
            return None
        if job.state.is_end:
            return self._ended(job)
        self._report(job)
        return None

    def _notice_a_new_start(self, job: Job) -> None:
        """What was said of an earlier start of the job is new again."""
        if self._before and job.restarts > self._before.restarts:
            self._said.clear()
            self._say(f"  restart {job.restarts}; {_restarts_used(job)}", Tone.WARNING)
        elif self._before and job.state == State.WAITING and self._before.state != State.WAITING:
            self._said.clear()
        self._before = job

    def _report(self, job: Job) -> None:
        """Says once what is new, and shows what it waits for."""
        self.progress.doing(str(job), self._detail(job))
        if job.state in (State.WAITING, State.SUSPENDED):
            # Of a new job Kueue says something within seconds. What it says changes seldom, and all else with it.
            because = " ".join(map(str, obstacles(job)))
            if because and because not in self._said:
                self._said.add(because)
                for cause in diagnose(read_snapshot(self.cluster, job, read_jobs(self.cluster, self.team))):
                    self._say(f"  {job.words}: {cause}")
                    for line in cause.evidence:
                        self._say(f"    {line}")
            return
        slices = f": {counted(job.slices, 'slice')}" if job.slices else ""
        group = f" of pool group {job.group}" if job.group else ""
        self._say_once(f"  admitted{slices}{group}")
        self._say_obstacles(job)

    def _say_obstacles(self, job: Job) -> None:
        """What keeps hosts from running; the events say more, and are of interest until all run."""
        events = () if job.state == State.RUNNING else events_of(self.cluster, job)
        for cause in obstacles(job, events=events, build=self.build):
            self._say_once(f"  {cause}", Tone.WARNING)

    def _detail(self, job: Job) -> str:
        if job.position:
            return f"waits, number {job.position} in the queue of team {job.team}"
        if job.state == State.STARTING:
            pending = sum(pod.phase == "Pending" for pod in job.pods)
            return f"{job.running} of {counted(job.hosts, 'host')} run, {counted(pending, 'pod')} pending"
        return "admitted, no pods yet" if job.state == State.ADMITTED else job.words

    def _show_log(self, job: Job, pod: Pod) -> None:
        """From where it was left, until it ends, or the connection, or nothing comes for a while."""
        if pod.uid != self._pod:
            self._pod, self._position = pod.uid, Position()
            if not job.state.is_end:
                self._say(f"  {job.words}; log of {pod.place} (pod {pod.name}):", Tone.GOOD)
        self.progress.doing("")
        self.progress.line()
        try:
            with closing(
                self.cluster.log(
                    self.team,
                    pod.name,
                    container=pod.container,
                    follow=not job.state.is_end,
                    since=self._position.time,
                )
            ) as lines:
                for line in new_lines(lines, self._position):
                    print_line(line)
        except ApiError as error:
            # The pod was replaced, or its container has not begun yet: the next step reads what is there.
            if error.code not in (400, 404):
                raise

    def _ended(self, job: Job) -> int:
        if job.state == State.SUCCEEDED:
            self._say(f"{job} succeeded", Tone.GOOD)
            return 0
        message = f": {job.end_message}" if job.end_message else ""
        self._say(f"{job} failed{message}", Tone.BAD)
        if job.restarts:
            self._say(f"  after {counted(job.restarts, 'restart')}; {_restarts_used(job)}")
        failed = failed_pods(job)
        if not failed:
            return 1
        pod, ended = failed[0]
        others = f"; {counted(len(failed) - 1, 'more pod')} failed too" if len(failed) > 1 else ""
        ending = f" ended with {exit_words(ended)}" if ended else " failed"
        self._say(f"  {pod.place}{ending}{others}; the last lines of its log (pod {pod.name}):")
        for line in last_lines(self.cluster, job, pod, lines=_LAST_LINES):
            self._say(f"    {line}")
        return 1

    def _wait_for_answer(self, error: Unreachable) -> None:
        """Raises Unreachable when there has been no answer for too long. What was read is not read again."""
        now = self.clock()
        self._lost = now if self._lost is None else self._lost
        if now - self._lost > self.cluster.patience.change:
            raise error
        self.progress.doing(f"{self.kind} {self.team}/{self.name}", "the cluster does not answer; trying again")
        time.sleep(self.cluster.patience.poll)

    def _say_once(self, text: str, tone: Tone | None = None) -> bool:
        """Whether it was new."""
        if text in self._said:
            return False
        self._said.add(text)
        self._say(text, tone)
        return True

    def _say(self, text: str, tone: Tone | None = None) -> None:
        self.progress.line(printable(text), tone)


def _restarts_used(job: Job) -> str:
    return f"{job.restarts_used} of at most {job.most_restarts} are used up"


def following(
    cluster: Cluster,
    job: Job,
    *,
    progress: Progress,
    slice: int = 0,
    host: int = 0,
    part: str = "",
    build: str = "",
    until_it_runs: bool = False,
) -> int:
    """Follows a job to its end, or until Ctrl-C, which says how to go on; the exit code. Raises Failed."""
    if job.kind not in WITH_PODS:
        raise Failed(f"{job}: tpuenv follows {', '.join(WITH_PODS)} only; `kubectl logs` prints the logs of its pods")
    follower = Follower(
        cluster=cluster,
        team=job.team,
        kind=job.kind,
        name=job.name,
        progress=progress,
        slice=slice,
        host=host,
        part=_part(job, slice, host, part),
        build=build,
        until_it_runs=until_it_runs,
    )
    try:
        return follower.follow()
    except Failed as error:
        raise Failed(f"{error}\n{job} goes on; follow it again with `{follow_again(job.name, job.team)}`") from error
    except KeyboardInterrupt:
        progress.doing("")
        progress.line(f"{job} goes on. To follow it again, or to stop it:")
        progress.line(f"  {follow_again(job.name, job.team)}")
        progress.line(f"  tpuenv cancel {job.name} --team {job.team}")
        return INTERRUPTED


def _part(job: Job, slice: int, host: int, part: str) -> str:
    """Where nothing is named, the part whose log is the program's."""
    return part or (job.program_part if (slice, host) == (0, 0) else "")


def _places(job: Job) -> str:
    """ "slices 0 to 1 with hosts 0 to 3"; of a Job without chips "pods 0 to 3"."""
    pods = job.host_pods
    hosts = [pod.host for pod in pods]
    if not pods[0].has_chips and not pods[0].part:
        return _from_to("pod", hosts)
    return f"{_from_to('slice', [pod.slice for pod in pods])} with {_from_to('host', hosts)}"


def _from_to(what: str, numbers: Sequence[int]) -> str:
    first, last = min(numbers), max(numbers)
    return f"{what} {first}" if first == last else f"{what}s {first} to {last}"


def print_log(cluster: Cluster, job: Job, *, slice: int, host: int, part: str = "") -> None:
    """Prints what a host has logged so far. Raises WrongArgument for a host that the job does not have, and Failed."""
    part = _part(job, slice, host, part)
    pod = job.pod(slice=slice, host=host, part=part)
    if pod is None and job.pods and not (part and part == job.program_part):
        parts = sorted({pod.part for pod in job.pods if pod.part})
        if not job.host_pods:
            print_it = f"`tpuenv logs {job.name} --part {parts[0]}` prints that log"
            raise Failed(f"{job} ({job.words}) has no pods of hosts now, only of {', '.join(parts)}: {print_it}")
        others = f"; parts: {', '.join(parts)}" if len(parts) > 1 else ""
        what = f"{f'part {part}, ' if part else ''}slice {slice}, host {host}"
        raise WrongArgument(f"{job} has no {what}; it has {_places(job)}{others}")
    if pod is None or not pod.started:
        why = "; ".join(map(str, obstacles(job)))
        raise Failed(f"{job} has logged nothing: it is {job.words}" + (f": {why}" if why else ""))
    with closing(cluster.log(job.team, pod.name, container=pod.container)) as lines:
        for line in new_lines(lines, Position()):
            print_line(line)


def print_line(line: str) -> None:
    """A line of a log on standard output, whatever its encoding."""
    encoding = sys.stdout.encoding or "utf-8"
    print(line.encode(encoding, errors="backslashreplace").decode(encoding), flush=True)


def follow_again(name: str, team: str) -> str:
    """The command that follows a job."""
    return f"tpuenv logs {name} --team {team} --follow"
