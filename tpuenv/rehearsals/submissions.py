"""Submits the rendered workloads in a rehearsal: each manifest, for every team and every pool group it may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environment import Environment, PoolGroup
from environment.fleet.quotas import can_have_one, slices_of_teams
from manifests.recipes import KUSTOMIZATION
from tpuenv.jobs.manifests import documents
from tpuenv.rehearsals.parts import Parts

# What a job may wait for, as codes of admission: Google's machines; and slices that other teams use.
_MACHINES = frozenset({"admission-check"})
_OTHERS = frozenset({"quota-in-use"})


@dataclass(frozen=True, kw_only=True)
class _Round:
    """One manifest for one pool group. `teams`: the chips of the group that each team owns; owners come first."""

    manifest: Path  # below {team}/{group}/ in the folder of rendered manifests
    group: PoolGroup
    teams: Mapping[str, int]
    without: tuple[str, ...]  # teams that can never have a slice of the group


def submit_workloads(parts: Parts, cluster: str) -> None:
    """Submits manifest by manifest and group by group, and prints what becomes of it; what fails is a problem.

    The jobs of one round are deleted before the next, so that no manifest waits for another. Those of the last stay:
    destroying an environment while jobs run is part of a rehearsal.
    """
    from rehearsal.jobs import delete

    root = parts.world.output / "manifests"
    created: list[dict[str, Any]] = []
    for round_ in _rounds(parts.environment, root):
        delete(parts.world, cluster, created)
        created.clear()
        parts.say(f"  {round_.manifest} on pool group {round_.group.name}")
        verdicts: dict[str, list[str]] = {}
        for team, owned in round_.teams.items():
            file = root / team / round_.group.name / round_.manifest
            verdict = _submit(parts, cluster, file, f"{team}: {round_.manifest} on {round_.group.name}", owned, created)
            if verdict:
                verdicts.setdefault(verdict, []).append(team)
        for verdict, teams in verdicts.items():
            parts.say(f"    {', '.join(teams)}: {verdict}")
        for team in round_.without:
            parts.say(f"    {team}: not submitted: it owns no slice of the group and can borrow none")


def _rounds(environment: Environment, root: Path) -> Iterator[_Round]:
    groups, teams = environment.groups, environment.teams
    shared = slices_of_teams(groups, teams)
    files = (path.relative_to(root) for suffix in ("yaml", "yml") for path in root.rglob(f"*.{suffix}"))
    rendered = {path for path in files if path.name != KUSTOMIZATION}
    for manifest in sorted({Path(*path.parts[2:]) for path in rendered}):
        for group in groups:
            users = [team for team in teams if Path(team.name, group.name, manifest) in rendered]
            able = [team for team in users if can_have_one(team, teams, shared[group.name])]
            owned = {team.name: shared[group.name][team.name] * group.slice.chips for team in able}
            yield _Round(
                manifest=manifest,
                group=group,
                teams=dict(sorted(owned.items(), key=lambda item: not item[1])),
                without=tuple(team.name for team in users if team not in able),
            )


def _submit(parts: Parts, cluster: str, file: Path, what: str, owned: int, created: list[dict[str, Any]]) -> str:
    """Submits the documents of a manifest; what became of them, without problems. Adds to `created` what it creates."""
    from rehearsal.jobs import submit

    lines: list[str] = []
    chips = 0
    for document in documents(str(file)):
        if document.problem:
            parts.wrong(f"{what}: {document.problem}")
            continue
        submitted = submit(parts.world, cluster, document.value)
        created += submitted.created
        chips += submitted.chips
        # A team's job starts on slices that the team owns, whatever the others do.
        may_wait_for = _MACHINES if chips <= owned else _MACHINES | _OTHERS
        verdict = "; ".join(submitted.lines)
        if submitted.pods_without_node:
            parts.wrong(f"{what}: {submitted.pods_without_node} pods have no node pool: {verdict}")
        elif not submitted.admitted and not (submitted.waits_for and submitted.waits_for <= may_wait_for):
            parts.wrong(f"{what} is not admitted: {verdict}")
        else:
            lines += submitted.lines
        for line in submitted.not_started:
            parts.wrong(f"{what}: {line}")
    return "\n      ".join(lines)
