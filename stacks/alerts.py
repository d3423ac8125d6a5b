"""The alerts: a query that has a result while something is wrong, how long it may, and what to do then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from environment import CapacityMode, Environment
from stacks.queries import Queries

RESTARTS_AN_HOUR = 3

# How long an admitted job may be without pods: as long as images take, and where slices are created on demand, the time
# for that too, after which Kueue stops the job (PODS_READY_TIMEOUT_AUTOSCALED in platform.py).
STARTING_MINUTES, STARTING_MINUTES_AUTOSCALED = 15, 135


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One policy. `minutes` is how long the query must have had a result; `help` is Markdown."""

    id_: str
    title: str
    query: str
    minutes: int
    help: str


def alerts(environment: Environment) -> tuple[Alert, ...]:
    queries = Queries(environment)
    return (
        Alert(
            id_="slice-partly-ready",
            title="a slice is partly ready",
            query=queries.partly_ready(),
            minutes=15,
            help="Some hosts of a slice run and others do not, so the job waits and its chips idle. `tpuenv why JOB` "
            "says what the missing hosts lack: a node, an image, a volume. After a while Kueue stops the job and gives "
            "the slice to the next.",
        ),
        Alert(
            id_="ray-partly-ready",
            title="a group of Ray workers is partly ready",
            query=queries.partly_ready_ray(),
            minutes=15,
            help="Some hosts of a Ray cluster run and others do not. A program that needs all of them waits, and its "
            "chips idle. `tpuenv why JOB` says what the missing hosts lack.",
        ),
        *_without_pods(environment, queries),
        Alert(
            id_="pending-while-quota-is-free",
            title="jobs wait although the quota of their team has room for them",
            query=f"({queries.waiting_chips()}) > 0 and ({queries.free()}) >= ({queries.waiting_chips()})",
            minutes=15,
            help="The team's own quota has room for all that waits in its queue, and nothing is admitted. "
            "`tpuenv why JOB` names the cause: the queue is on hold, jobs that have borrowed the chips do not stop, or "
            "there are not enough cores or memory.",
        ),
        Alert(
            id_="jobset-restarts",
            title="a job restarts again and again",
            query=f"({queries.restarts_of_an_hour()}) >= {RESTARTS_AN_HOUR}",
            minutes=1,
            help="The JobSet has restarted three times in an hour. `tpuenv logs JOB` shows its last lines, "
            "`tpuenv why JOB` which host crashed. Where nodes were taken away, the dashboard of TPUs shows "
            "interruptions.",
        ),
        Alert(
            id_="nat-ports",
            title="Cloud NAT has no ports left",
            query=f"(sum(increase({queries.nat('dropped_sent_packets_count', _NO_PORTS)}[5m]))) > 0",
            minutes=1,
            help="Connections from nodes to the internet are dropped, because a VM has used all ports that Cloud NAT "
            "gives it for one destination. Open fewer connections at once, download into the team's bucket first, or "
            "use mirrors. https://cloud.google.com/nat/docs/troubleshooting",
        ),
    )


def _without_pods(environment: Environment, queries: Queries) -> Iterator[Alert]:
    """None where all slices are flex-start: a job may wait for those a week, and has its chips meanwhile."""
    groups = [group for group in environment.groups if group.capacity is not CapacityMode.FLEX_START]
    if groups:
        created = any(group.autoscaled for group in groups)
        yield Alert(
            id_="chips-without-pods",
            title="a team holds chips on which no pod runs",
            query=f"{queries.held_without_pods(*(group.name for group in groups))} > 0",
            minutes=STARTING_MINUTES_AUTOSCALED if created else STARTING_MINUTES,
            help="A job of the team has its quota and no pods on some or all of its slices, so nobody can use those "
            "chips. `tpuenv status` names such jobs as stuck and `tpuenv why JOB` says why; `tpuenv requeue JOB` "
            "starts one again on the next free slice.",
        )


_NO_PORTS = 'reason="OUT_OF_RESOURCES"'
