"""What is run for whom, and what that costs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from environment import Environment, PoolGroup
from environment.fleet.quotas import most_slices, slices_of_teams
from environment.fleet.values import meant
from manifests.render import Run
from tpuenv.cost.estimate import machines
from tpuenv.cost.paid import of_group
from tpuenv.cost.prices import load
from tpuenv.failure import WrongArgument
from tpuenv.jobs.runs import run_of, team_names
from tpuenv.verification.rows import Row, Verdict, row
from vocabulary.printable import counted, quoted

RECIPE = "hello-tpu"


def planned(environment: Environment, *, team: str | None, group: str | None) -> list[Run]:
    """A run of hello-tpu on one slice for each team and each pool group that it may use. Raises WrongArgument."""
    teams = team_names(environment, team)
    groups = [item.name for item in environment.groups]
    if group is not None and group not in groups:
        raise WrongArgument(f"--group: there is no pool group {quoted(group)}{meant(group, groups)}")
    pairs = [
        (item.name, name)
        for name in groups
        for item in environment.teams
        if item.name in teams and name in item.pools and group in (None, name)
    ]
    if not pairs and team is not None:
        run_of(environment, RECIPE, team=team, group=group)  # which says what the team may use
    return [_run(environment, *pair) for pair in pairs]


def _run(environment: Environment, team: str, group: str) -> Run:
    settings = {
        "max_restarts": "0",  # a fault that a second start hides is what this is about
        "bucket": environment.names.bucket(team),
        "other_buckets": ",".join(other_buckets(environment, team)),
    }
    words = [f"{key}={value}" for key, value in settings.items()]
    name = f"verify-{secrets.token_hex(4)}"
    return run_of(environment, RECIPE, team=team, group=group, settings=words, name=name)


def other_buckets(environment: Environment, team: str) -> list[str]:
    """The buckets that jobs of the team must not use: those of the other teams, and that of Terraform's states."""
    names = environment.names
    return [*(names.bucket(item.name) for item in environment.teams if item.name != team), names.state_bucket]


def possible(runs: Sequence[Run]) -> tuple[list[Run], list[Row]]:
    """The runs that can have a slice, and a row for each other."""
    can, rows = [], []
    for run in runs:
        environment = run.environment
        assert run.group is not None
        shared = slices_of_teams(environment.groups, environment.teams)[run.group.name]
        if most_slices(run.team, environment.teams, shared):
            can.append(run)
            continue
        fix = "give the team a larger share, or let it borrow: docs/fleet.md"
        measured = "it owns no slice of the group and can borrow none"
        rows.append(row(run, "start", "1 slice", measured, Verdict.NOT_VERIFIED, fix))
    return can, rows


def is_charged(group: PoolGroup) -> bool:
    """Whether Google creates a slice, and is paid for it, because a job asks for it."""
    return group.autoscaled or group.capacity.comes_and_goes


def without_charged(runs: Sequence[Run]) -> tuple[list[Run], list[Row]]:
    """The runs on slices that exist anyway, and a row for each other."""
    kept = [run for run in runs if run.group and not is_charged(run.group)]
    left, fix = "left out: its slice is created and paid for the run", "add --auto-approve to create and pay it"
    rows = [row(run, "start", "1 slice", left, Verdict.NOT_VERIFIED, fix) for run in runs if run not in kept]
    return kept, rows


def announcement(environment: Environment, runs: Sequence[Run], timeout: str) -> Iterator[str]:
    """How many slices are used, for how long, and what is paid for them."""
    by_group: dict[str, list[Run]] = {}
    for run in runs:
        by_group.setdefault(run.group.name if run.group else "", []).append(run)
    yield f"Runs {RECIPE} {_times(len(runs))}, in each pool group on one slice at a time:"
    for name, of_one in by_group.items():
        group = of_one[0].group
        assert group is not None
        paid = f"; a slice is created for each run, {_price(environment, group)}" if is_charged(group) else ""
        yield f"  {name} ({group.slice.tpu_type}): {', '.join(run.team.name for run in of_one)}{paid}"
    yield (
        f"A run takes some minutes when its hosts run, and {timeout} at most. It starts only where a slice is free. "
        "A job that needs the slice may stop it; a job that borrows the slice as it starts can be stopped."
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _price(environment: Environment, group: PoolGroup) -> str:
    """What one slice of the group costs, by the list prices."""
    amount = machines(of_group(environment, group, 1), load(None, environment.settings.region)).busy
    if not amount.usd:
        return "and its price is not known here"
    return f"at {'at least ' if amount.unknown else ''}{amount.usd:,.2f} USD an hour (list price)"


def with_images(runs: Sequence[Run], images: Mapping[str, str]) -> list[Run]:
    """The runs with these images by their digests."""
    return [replace(run, images=images) for run in runs]


def charged_slices(runs: Sequence[Run]) -> str:
    """ "2 slices": how many are created for the runs."""
    return counted(sum(run.group is not None and is_charged(run.group) for run in runs), "slice")
