"""Submits the recipes in a rehearsal: each for every team and every pool group it may use, and once on all slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admission.boundary import boundary_of, refusals_of
from environment import Environment, PoolGroup, Team
from environment.fleet.quotas import most_slices, slices_of_teams
from environment.kubernetes.team_objects import namespace
from manifests.recipes import BadManifest, Recipe, all_recipes
from manifests.render import Run, rendered
from tpuenv.jobs.manifests import Document, documents, documents_in
from tpuenv.rehearsals.parts import Parts
from vocabulary.keys import CPU_GROUP
from vocabulary.printable import counted

# What a job may wait for, as codes of admission: Google's machines; slices that other teams use; and, while HOLD_QUEUES
# is true, the queues.
_MACHINES = frozenset({"admission-check"})
_OTHERS = frozenset({"quota-in-use"})
_HELD = frozenset({"queue-stopped"})


@dataclass(frozen=True, kw_only=True)
class _Round:
    """One recipe for one pool group, or for the CPU pool, on so many slices.

    `teams`: the slices of the group that each team owns; owners come first.
    """

    recipe: Recipe
    group: PoolGroup | None
    slices: int
    teams: Mapping[str, int]
    without: tuple[str, ...] = ()  # teams that can never have a slice of the group
    unsuited: str = ""  # why the recipe does not run on the group, which is then left to no team

    @property
    def title(self) -> str:
        if self.group is None:
            return f"{self.recipe.name} on the CPU pool"
        return f"{self.recipe.name} on {counted(self.slices, 'slice')} of pool group {self.group.name}"


def submit_recipes(parts: Parts, cluster: str, recipes: Sequence[Recipe] | None = None) -> list[dict[str, Any]]:
    """Submits recipe by recipe and group by group, and prints what becomes of it; what fails is a problem.

    On one slice for every team, as synthesis rendered it; then, for the team that can have the most, on all those.
    The jobs of one round end and are deleted before the next, so that no recipe waits for another; whose pods hold a
    slice after the end is a problem. Those of the last stay, because destroying an environment while jobs run is part
    of a rehearsal; returns the objects that stay.
    """
    from rehearsal.jobs import delete, end

    created: list[dict[str, Any]] = []
    before = ""
    for round_ in _rounds(parts.environment, all_recipes() if recipes is None else recipes):
        parts.say(f"  {round_.title}")
        if round_.unsuited:
            parts.say(f"    not submitted: {round_.unsuited}")
            continue
        if left := end(parts.world, cluster, created):
            parts.wrong(f"{before}: after the end of its jobs their pods still hold {counted(left, 'host')} of slices")
        delete(parts.world, cluster, created)
        created.clear()
        before = round_.title
        verdicts: dict[str, list[str]] = {}
        for team, owned in round_.teams.items():
            verdict = _submit(parts, cluster, round_, team, owned, created)
            if verdict:
                verdicts.setdefault(verdict, []).append(team)
        for verdict, teams in verdicts.items():
            parts.say(f"    {', '.join(teams)}: {verdict}")
        for team in round_.without:
            parts.say(f"    {team}: not submitted: it owns no slice of the group and can borrow none")
    return created


def _rounds(environment: Environment, recipes: Sequence[Recipe]) -> Iterator[_Round]:
    teams = environment.teams
    shared = slices_of_teams(environment.groups, teams)
    for recipe in sorted(recipes, key=lambda known: known.tpu):  # last those with TPUs, whose jobs stay
        if not recipe.tpu:
            yield _Round(recipe=recipe, group=None, slices=0, teams={team.name: 0 for team in teams})
            continue
        for group in environment.groups:
            if why := recipe.unsuited(group):
                yield _Round(recipe=recipe, group=group, slices=1, teams={}, unsuited=why)
                continue
            users = [team for team in teams if group.name in team.pools]
            most = {team.name: most_slices(team, teams, shared[group.name]) for team in users}
            owned = {name: shared[group.name][name] for name in most if most[name]}
            yield _Round(
                recipe=recipe,
                group=group,
                slices=1,
                teams=dict(sorted(owned.items(), key=lambda item: not item[1])),
                without=tuple(name for name in most if not most[name]),
            )
            largest = max(most, key=lambda name: most[name], default="")
            slices = min(most.get(largest, 0), recipe.most_slices(group))
            if slices > 1:
                yield _Round(recipe=recipe, group=group, slices=slices, teams={largest: owned[largest]})


def _documents(parts: Parts, round_: _Round, team: Team) -> Iterator[Document]:
    """What is submitted: the Kustomize base that synthesis wrote, or where there is none, the run, rendered now."""
    folder = Path(team.name, round_.group.name if round_.group else CPU_GROUP, round_.recipe.name)
    if round_.slices <= 1 and not round_.recipe.required:
        for file in round_.recipe.manifests:
            yield from documents(str(parts.world.output / "manifests" / folder / file))
        return
    run = Run(
        recipe=round_.recipe,
        environment=parts.environment,
        team=team,
        group=round_.group,
        slices=max(1, round_.slices),
        settings=round_.recipe.required,
    )
    try:
        texts = rendered(run)
    except BadManifest as bad:
        yield Document(file=str(folder), problem=str(bad))
        return
    for file, text in texts.items():
        yield from documents_in(text, file=str(folder / file))


def _refused_images(environment: Environment, team: Team, documents: Sequence[Document]) -> str:
    """An image that the setting leaves out, which is no fault of the environment; "" for none."""
    within = boundary_of(namespace(environment, team))
    said = (row for item in documents for row in ([item.problem] if item.problem else refusals_of(item.value, within)))
    return next((row for row in said if "ALLOWED_IMAGES" in row), "")


def _submit(parts: Parts, cluster: str, round_: _Round, team: str, owned: int, created: list[dict[str, Any]]) -> str:
    """Submits a run; what became of its documents, without problems. Adds to `created` what it creates."""
    from rehearsal.jobs import submit

    lines: list[str] = []
    chips = 0
    what = f"{team}: {round_.title}"
    owned_chips = owned * round_.group.slice.chips if round_.group else 0
    (member,) = (known for known in parts.environment.teams if known.name == team)
    documents = list(_documents(parts, round_, member))
    if refused := _refused_images(parts.environment, member, documents):
        return f"not submitted: {refused}"
    for document in documents:
        if document.problem:
            parts.wrong(f"{what}: {document.problem}")
            continue
        submitted = submit(parts.world, cluster, document.value)
        created += submitted.created
        chips += submitted.chips
        # A team's job starts on slices that the team owns, whatever the others do. All teams share the CPU pool.
        may_wait_for = _MACHINES if round_.group and chips <= owned_chips else _MACHINES | _OTHERS
        if parts.environment.settings.hold_queues:
            may_wait_for |= _HELD
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
