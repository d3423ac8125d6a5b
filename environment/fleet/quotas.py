"""Shares out every pool group, in whole slices, among the teams that may use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from environment.fleet.model import Fleet, PoolGroup, Team
from environment.problems import Problem
from vocabulary.printable import listed


def claims_of(teams: Sequence[Team]) -> list[Fraction]:
    """Each team's part of the whole; together 1."""
    whole = sum(team.share for team in teams)
    return [team.share / whole for team in teams]


def share_out(total: int, claims: Sequence[Fraction], owed: Sequence[Fraction]) -> list[int]:
    """`total` whole things by the method of the largest remainder; `claims` add up to 1.

    `owed` is what each still lacks from earlier calls. The result has the order of `claims`: parts rounded up or down.
    """
    parts = [total * claim for claim in claims]
    got = [int(part) for part in parts]
    missing = sorted(range(len(parts)), key=lambda i: got[i] - parts[i] - owed[i])
    # A part without a fraction is not rounded up, however much is owed.
    first = [i for i in missing if parts[i] > got[i]]
    for i in first[: total - sum(got)]:
        got[i] += 1
    return got


def slices_of_teams(groups: Sequence[PoolGroup], teams: Sequence[Team]) -> Mapping[str, Mapping[str, int]]:
    """Group -> team -> slices, for the teams that may use the group: together all that there are.

    A team that came short in one group comes before the others in the next.
    """
    owed = {team.name: Fraction(0) for team in teams}  # chips
    shared: dict[str, dict[str, int]] = {}
    for group in groups:
        users = [team for team in teams if group.name in team.pools]
        if not users:
            shared[group.name] = {}
            continue
        claims = claims_of(users)
        got = share_out(group.slices, claims, [owed[team.name] / group.slice.chips for team in users])
        for team, claim, slices in zip(users, claims, got, strict=True):
            owed[team.name] += group.slice.chips * (group.slices * claim - slices)
        shared[group.name] = {team.name: slices for team, slices in zip(users, got, strict=True)}
    return shared


def quota_problems(fleet: Fleet) -> Iterator[Problem]:
    """Slices that nobody may use, and teams that could never have one."""
    shared = slices_of_teams(fleet.groups, fleet.teams)
    for group in fleet.groups:
        if not shared[group.name]:
            yield Problem(
                keys=(fleet.key("tpu_pools", group.name), fleet.key("teams")),
                message="is in the pools of no team, so nobody could use it; add it to one, or remove it",
            )
    for team in fleet.teams:
        if not any(most_slices(team, fleet.teams, shared[pool]) for pool in team.pools):
            yield Problem(
                keys=(fleet.key("teams", team.name), fleet.key("teams"), *fleet.size_keys),
                message="owns no slice by its share and can borrow none, so no job of it could ever start; raise its "
                "share, let it borrow, or let other teams lend",
            )


def quota_warnings(fleet: Fleet) -> Iterator[Problem]:
    """Teams that own no slice at all."""
    shared = slices_of_teams(fleet.groups, fleet.teams)
    without = [team.name for team in fleet.teams if not any(shared[pool][team.name] for pool in team.pools)]
    if without:
        yield Problem(
            keys=(fleet.key("teams"),),
            message=f"by their shares {listed(without)} own no whole slice: their jobs start only on what other teams "
            "leave idle, and stop when those need it; add slices, or let fewer teams use a group",
        )


def most_slices(team: Team, teams: Sequence[Team], slices: Mapping[str, int]) -> int:
    """The most slices of a group that a team can have at once: its own, and those that others lend. 0 of a group that
    it may not use.
    """
    if team.name not in slices:
        return 0
    others = [other for other in teams if other.name in slices and other.name != team.name]
    lent = sum(lendable(other, slices[other.name]) for other in others)
    return slices[team.name] + (lent if team.borrowing_limit is None else min(lent, team.borrowing_limit))


def lendable(team: Team, slices: int) -> int:
    """How many of its own slices of one group other teams may use while it does not."""
    return slices if team.lending_limit is None else min(slices, team.lending_limit)
