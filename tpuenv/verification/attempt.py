"""One run of hello-tpu: created where a slice is free, watched until it ends, and what it says as rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from admission import Reason
from admission import Verdict as Admission
from manifests.render import Run, rendered
from tpuenv.failure import Failed
from tpuenv.jobs.diagnosis.cause import Cause
from tpuenv.jobs.diagnosis.diagnose import diagnose
from tpuenv.jobs.diagnosis.snapshot import read_snapshot
from tpuenv.jobs.job import Job, State
from tpuenv.jobs.log import Position, new_lines
from tpuenv.jobs.manifests import documents_in
from tpuenv.jobs.pod import Pod
from tpuenv.jobs.read_jobs import read_job, read_jobs
from tpuenv.jobs.submission import create
from tpuenv.kubernetes.client import Cluster
from tpuenv.kubernetes.errors import ApiError
from tpuenv.kubernetes.objects import Object, status_of
from tpuenv.verification.free_slice import explained
from tpuenv.verification.plan import RECIPE, is_charged, other_buckets
from tpuenv.verification.rows import Row, Verdict, row, rows_of_report, shortly
from vocabulary.keys import JOBSET_LABEL, PRIORITY_LABEL, SIMULATED_NODE_ANNOTATION, TPU
from vocabulary.printable import counted
from vocabulary.quantity import parse

# A job that waits only for this has its quota.
_MACHINES = "admission-check"

# What holds a job while others have the slices.
_TAKEN = ("quota-in-use", "preempts")

# For how many polls a slice may still count as used by the run before.
_SETTLING = 10

# The codes of `tpuenv why` for what passes by itself, and is no fault of the environment.
_WAITS = ("quota", "preempted", "waits-for-machines", "machines-retry", "not-decided", "not-seen")
_SLOW_MACHINES = ("stock-out", "being-created", "scale-up-failed", "backoff", "no-pods-yet", "no-node", "starting")
_CHIPS_TAKEN = ("chips-in-use", "exclusive")

_LAST_LINES = 200  # of a log, in which the report is
_HOSTS_READ = 3  # whose problems are shown, beside the first
_UNREAL = ("sums and products", "bandwidth", "own bucket", "other buckets", "other Services")


@dataclass(kw_only=True)
class Attempt:
    """`seconds` are those until it must have ended, of which `timeout` is how they were written. `settles`: a slice may
    still count as used by a run before.
    """

    cluster: Cluster
    run: Run
    seconds: float
    timeout: str
    clock: Callable[[], float]
    settles: bool = False
    job: Job | None = None
    _to_delete: tuple[str, str, str] | None = None  # kind, namespace and name of what it has created, or may have
    _began: float = field(init=False)
    _nodes_read: bool = False

    def __post_init__(self) -> None:
        self._began = self.clock()

    def step(self) -> list[Row] | None:
        """Reads once, and does what is next; the rows when it has ended. Raises Failed."""
        if self.job is None and (rows := self._start()) is not None:
            return rows
        if self.job is None:
            return None
        job = read_job(self.cluster, team=self.job.team, kind=self.job.kind, name=self.job.name)
        if job is None:
            fix = "run this again"
            return [row(self.run, "start", "ends by itself", f"{self.job} was deleted", Verdict.FAILED, fix)]
        self.job = job
        if job.state.is_end or (job.state is State.RUNNING and not self._nodes_read):
            self._nodes_read = True
            if nodes := self._simulated_nodes(job):
                return list(self._simulated(nodes))
        if job.state.is_end:
            return list(self._ended(job))
        return None if self.in_time else [self._late(job)]

    @property
    def in_time(self) -> bool:
        return self.clock() - self._began <= self.seconds

    @property
    def words(self) -> str:
        """How far it is: "research on dev starting (2 of 4 hosts run)"."""
        return f"{self.place} {self.job.words if self.job else 'waits for a free slice'}"

    @property
    def place(self) -> str:
        """ "research on dev" """
        return f"{self.run.team.name} on {self.run.group.name if self.run.group else ''}"

    @property
    def cancel(self) -> str:
        """The command that deletes its job; "" where nothing was created."""
        return f"tpuenv cancel {self._to_delete[2]} --team {self._to_delete[1]}" if self._to_delete else ""

    def remains(self) -> list[str]:
        """What is still there of a job that was deleted."""
        if self.job is None:
            return []
        body = self.cluster.find(self.job.kind, self.job.team, self.job.name)
        pods = self.cluster.all("Pod", self.job.team, labels={JOBSET_LABEL: self.job.name})
        return [*([str(self.job)] if body else []), *([counted(len(pods), "pod") + f" of {self.job}"] if pods else [])]

    def delete(self) -> None:
        """Deletes the job, where there is one; its pods delete what they wrote to buckets. Raises Failed."""
        if self._to_delete is None:
            return
        try:
            self.cluster.delete(*self._to_delete)
        except ApiError as error:
            if error.code != 404:
                raise

    def _start(self) -> list[Row] | None:
        """Creates the job; why not, where it does not, and None while a slice may still become free."""
        manifest = self._manifest()
        explanation = explained(self.cluster, manifest, team=self.run.team.name)
        never = [item for item in explanation.reasons if item.verdict in (Admission.NEVER, Admission.REFUSED)]
        if never:
            return [self._not_started(Verdict.FAILED, *_said(never))]
        holding = [item for item in explanation.reasons if item.code != _MACHINES]
        if not holding:
            self._create(manifest)
            return None
        if self.settles and self.clock() - self._began < _SETTLING * self.cluster.patience.poll:
            return None
        if any(item.code not in _TAKEN for item in holding):
            return [self._not_started(Verdict.WAITING, *_said(holding))]
        teams = ", ".join(dict.fromkeys(name.partition("/")[0] for name in explanation.preempts))
        borrowed = f"its slices are borrowed by jobs of {teams}, and this command stops no job"
        measured = borrowed if teams else "all slices that the team may use are in use by other jobs"
        return [self._not_started(Verdict.BUSY, measured, "`tpuenv status` shows the jobs; run this again after them")]

    def _create(self, manifest: Object) -> None:
        # Before it is created: an interrupt may come before its job is known here.
        self._to_delete = (manifest["kind"], manifest["metadata"]["namespace"], manifest["metadata"]["name"])
        try:
            self.job = create(self.cluster, [manifest], recipe=RECIPE)
        except Failed:  # which names what remains
            self._to_delete = None
            raise

    def _manifest(self) -> Object:
        """The JobSet of the run as `tpuenv submit` creates it, but that it goes behind all others, and ends in time."""
        (manifest,) = (
            document.value for file, text in rendered(self.run).items() for document in documents_in(text, file=file)
        )
        # Without a class its priority is 0, and every class has more: its team's jobs stop it, and it stops none.
        manifest["metadata"]["labels"].pop(PRIORITY_LABEL)
        for replicated in manifest["spec"]["replicatedJobs"]:
            # Also where this command is killed, it does not hold its slice for longer.
            replicated["template"]["spec"]["activeDeadlineSeconds"] = max(1, int(self.seconds))
        body: Object = manifest
        return body

    def _ended(self, job: Job) -> list[Row]:
        report = self._report(job, job.pod(slice=0, host=0))
        rows = list(rows_of_report(self.run, report, other_buckets(self.run.environment, job.team))) if report else []
        problems = (report or {}).get("problems") or []
        unexplained = (job.state is State.FAILED or problems) and all(
            item.verdict is not Verdict.FAILED for item in rows
        )
        if not report or unexplained:
            cause = self._why(job)
            measured = shortly(problems) or self._problems_elsewhere(job) or f"{job.words}: {cause.cause}"
            if job.state is State.SUCCEEDED and not report:
                measured = "it succeeded, and its first host has printed no report"
            of_group = f"`tpuenv submit {RECIPE} --team {job.team} --group {job.group}`"
            fix = cause.fix if job.state is State.FAILED and cause.fix else f"{of_group}, and read its log"
            rows.append(row(self.run, "every host", "ends well", measured, Verdict.FAILED, fix))
        return rows

    def _report(self, job: Job, pod: Pod | None) -> dict[str, Any] | None:
        """The line of JSON that a host has printed; None where there is none."""
        if pod is None:
            return None
        report = None
        try:
            with closing(self.cluster.log(job.team, pod.name, container=pod.container, tail=_LAST_LINES)) as lines:
                for line in new_lines(lines, Position()):
                    if line.startswith("{"):
                        report = _object(line) or report
        except ApiError:
            return None
        return report

    def _problems_elsewhere(self, job: Job) -> str:
        """What other hosts than the first have found out; "" for nothing."""
        failed = [pod for pod in job.host_pods if pod.phase == "Failed" and pod.host]
        problems = []
        for pod in failed[:_HOSTS_READ]:
            found = (self._report(job, pod) or {}).get("problems") or []
            problems += [f"host {pod.host}: {problem}" for problem in found]
        return shortly(problems)

    def _late(self, job: Job) -> Row:
        """Why it has not ended in time: the first line of `tpuenv why`."""
        cause = self._why(job)
        waits = cause.code in _WAITS or (job.state is not State.RUNNING and cause.code in self._passing())
        if job.state is State.RUNNING:
            cause = Cause(code="runs", cause="it has not ended", fix="give it a larger --timeout")
        measured = f"{job.words}: {cause.cause}"
        return self._not_started(Verdict.WAITING if waits else Verdict.FAILED, measured, cause.fix)

    def _passing(self) -> tuple[str, ...]:
        """Of a slice that Google creates for the run, or may take back, that it is not there is no fault."""
        group = self.run.group
        comes = group is not None and (is_charged(group) or group.capacity.value == "spot")
        return (*_CHIPS_TAKEN, *(_SLOW_MACHINES if comes else ()))

    def _why(self, job: Job) -> Cause:
        return diagnose(read_snapshot(self.cluster, job, read_jobs(self.cluster, job.team)))[0]

    def _not_started(self, verdict: Verdict, measured: str, fix: str = "") -> Row:
        return row(self.run, "start", f"ends within {self.timeout}", measured, verdict, fix)

    def _simulated_nodes(self, job: Job) -> list[Object]:
        """The nodes of its hosts, if they run nothing; none where they are real, or may not be read."""
        names = {str((pod.body.get("spec") or {}).get("nodeName") or "") for pod in job.host_pods} - {""}
        try:
            first = self.cluster.find("Node", "", min(names)) if names else None
            if not first or SIMULATED_NODE_ANNOTATION not in (first["metadata"].get("annotations") or {}):
                return []
            return [node for node in self.cluster.all("Node") if node["metadata"]["name"] in names]
        except ApiError as error:
            if error.code != 403:
                raise
            return []

    def _simulated(self, nodes: Sequence[Object]) -> list[Row]:
        assert self.run.group is not None
        slice_ = self.run.group.slice
        chips = sum(int(parse(str((status_of(node).get("allocatable") or {}).get(TPU) or 0))) for node in nodes)
        rows = []
        for what, number, seen in (("hosts", slice_.hosts, len(nodes)), ("chips", slice_.chips, chips)):
            verdict = Verdict.SIMULATED if seen == number else Verdict.FAILED
            rows.append(row(self.run, what, str(number), str(seen), verdict, "look at the nodes"))
        nothing = "no program runs on simulated nodes"
        return rows + [row(self.run, what, "", nothing, Verdict.NOT_VERIFIED) for what in _UNREAL]


def _said(reasons: Sequence[Reason]) -> tuple[str, str]:
    """What holds a job, and what to do."""
    return "; ".join(item.what for item in reasons), "; ".join(item.fix for item in reasons if item.fix)


def _object(line: str) -> dict[str, Any] | None:
    """The report in a line; None if it has not the form that the rows rely on: a team's pod can print anything."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or "hosts" not in value:
        return None
    lists = [value.get(key, []) for key in ("problems", "all_gather")]
    asked = [value.get(key, {}) for key in ("own_bucket", "other_buckets", "other_services")]
    if not all(isinstance(item, list) for item in lists) or not all(isinstance(item, dict) for item in asked):
        return None
    texts = [*lists[0], *(said for answers in asked for said in answers.values())]
    return value if all(isinstance(item, str) for item in texts) else None
