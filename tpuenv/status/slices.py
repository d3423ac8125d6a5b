"""Which slices of each pool group are used, free and broken."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from environment.fleet.model import PoolGroup
from tpuenv.jobs.job import Job
from tpuenv.kubernetes.objects import Object, is_true, name_of
from vocabulary.keys import POOL_LABEL
from vocabulary.printable import counted

# Taints of a node that is broken or about to go. https://kubernetes.io/docs/reference/labels-annotations-taints/ and
# https://cloud.google.com/kubernetes-engine/docs/how-to/spot-vms
_GOING = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/out-of-service",
    "cloud.google.com/impending-node-termination",
)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A slice on which no job can start, and why: "3 of 4 nodes exist"."""

    slice: str  # its node pool
    why: str
    has_job: bool  # whether pods run on it, so that it is used as well
    chips: int  # of its nodes that exist: they are paid for


@dataclass(frozen=True, kw_only=True)
class Slices:
    """The slices of a pool group. None: not known, because this person may not read it.

    `used` are those whose quota jobs have, `problems` name the broken ones. A slice that is created when a job needs
    it, and is not there, is free. `stuck` are the jobs that hold quota of the group for nothing, `stuck_chips` what
    they hold.
    """

    group: str
    tpu_type: str
    slices: int
    used: int | None
    problems: tuple[Problem, ...] | None
    stuck: tuple[str, ...] = ()
    stuck_chips: int = 0

    @property
    def broken(self) -> int | None:
        return None if self.problems is None else len(self.problems)

    @property
    def partial_chips(self) -> int | None:
        """The chips of slices on which no job can start and none runs, though some of their nodes are there."""
        return None if self.problems is None else sum(item.chips for item in self.problems if not item.has_job)

    @property
    def free(self) -> int | None:
        """Neither used nor broken; where it is not known which are broken, those that are not used."""
        if self.used is None:
            return None
        broken_only = sum(not problem.has_job for problem in self.problems or ())
        return max(self.slices - self.used - broken_only, 0)


def slices_of(
    group: PoolGroup,
    used: float | None,
    nodes: Sequence[Object] | None,
    busy: Container[str] = (),
    stuck: Sequence[Job] = (),
) -> Slices:
    """`used` slices of all teams, a part of one where a job has only some of its hosts; `busy` are the names of nodes
    on which hosts of jobs run, `stuck` the jobs that hold quota for nothing.
    """
    here = [job for job in stuck if job.group == group.name]
    return Slices(
        group=group.name,
        tpu_type=group.slice.tpu_type,
        slices=group.slices,
        used=None if used is None else ceil(round(used, 6)),  # sums of thirds are not whole
        problems=None if nodes is None else tuple(_problems(group, nodes, busy)),
        stuck=tuple(job.name for job in here),
        stuck_chips=sum(job.chips for job in here),
    )


def _problems(group: PoolGroup, nodes: Sequence[Object], busy: Container[str]) -> Iterable[Problem]:
    by_pool: dict[str, list[Object]] = {}
    for node in nodes:
        by_pool.setdefault(str((node["metadata"].get("labels") or {}).get(POOL_LABEL)), []).append(node)
    for pool in group.node_pools:
        here = by_pool.get(pool, [])
        if not here and (group.autoscaled or group.capacity.comes_and_goes):
            continue
        wrong = {name_of(node): why for node in here if (why := _why_not(node))}
        hosts = group.slice.hosts
        if len(here) < hosts:
            why = f"{len(here)} of {counted(hosts, 'node')} exist"
        elif wrong:
            name, first = next(iter(wrong.items()))
            why = f"{hosts - len(wrong)} of {counted(hosts, 'node')} take pods; {name} {first}"
        else:
            continue
        running = sum(name_of(node) in busy for node in here)
        words = why + (f"; pods run on {running}" if running else "")
        chips = len(here) * group.slice.chips_per_host
        yield Problem(slice=pool, why=words, has_job=running > 0, chips=chips)


def _why_not(node: Object) -> str:
    """Why a node takes no pods; "" if it does."""
    taints = [str(taint.get("key")) for taint in (node.get("spec") or {}).get("taints") or []]
    going = [key for key in taints if key in _GOING]
    if not is_true(node, "Ready"):
        return "is not ready"
    if going:
        return f"has the taint {going[0]}"
    return "is cordoned" if (node.get("spec") or {}).get("unschedulable") else ""
