"""What is typed for a run -> a Run: the recipe, the team and the pool group by name, and the values of --set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from environment import Environment, PoolGroup, Team
from environment.fleet.values import meant
from manifests.recipes import BadManifest, Recipe, UnknownRecipe, recipe_named
from manifests.render import Run, unique_name
from tpuenv.failure import WrongArgument
from vocabulary.printable import quoted


def run_of(
    environment: Environment,
    recipe: str,
    *,
    team: str | None = None,
    group: str | None = None,
    slices: int = 1,
    settings: Sequence[str] = (),
    name: str | None = None,
) -> Run:
    """A run of the recipe of that name; `settings` are KEY=VALUE. Without a name it gets one that no other run has.

    The team and the pool group may be left out where there is only one. Raises WrongArgument with every mistake that
    can be found without rendering; manifests.render.rendered finds the others.
    """
    known = known_recipe(recipe)
    mistakes: list[str] = []
    chosen_team = _team(environment, team, mistakes)
    chosen_group = _group(environment, known, chosen_team, group, mistakes)
    values = dict(_settings(settings, mistakes))
    if mistakes or chosen_team is None:
        raise WrongArgument("\n".join(mistakes))
    return Run(
        recipe=known,
        environment=environment,
        team=chosen_team,
        group=chosen_group,
        slices=slices,
        settings=values,
        name=unique_name(known) if name is None else name,
    )


def known_recipe(name: str) -> Recipe:
    """The recipe of that name. Raises WrongArgument, which names the nearest one."""
    try:
        return recipe_named(name)
    except (UnknownRecipe, BadManifest) as error:
        raise WrongArgument(str(error)) from None


def known_team(environment: Environment, name: str | None) -> Team:
    """The team of that name; without a name the only one. Raises WrongArgument, which names the nearest, or all."""
    mistakes: list[str] = []
    team = _team(environment, name, mistakes)
    if team is None:
        raise WrongArgument("\n".join(mistakes))
    return team


def team_names(environment: Environment, team: str | None) -> list[str]:
    """The team of that name, or all. Raises WrongArgument for one that does not exist."""
    return [item.name for item in environment.teams] if team is None else [known_team(environment, team).name]


def _team(environment: Environment, name: str | None, mistakes: list[str]) -> Team | None:
    teams = {team.name: team for team in environment.teams}
    if name is None and len(teams) == 1:
        return environment.teams[0]
    if name is None:
        mistakes.append(f"--team is missing; name one of {', '.join(teams)}")
    elif name not in teams:
        mistakes.append(f"--team: there is no team {quoted(name)}{meant(name, teams)}")
    return teams.get(name or "")


def _group(
    environment: Environment, recipe: Recipe, team: Team | None, name: str | None, mistakes: list[str]
) -> PoolGroup | None:
    if not recipe.tpu:
        if name is not None:
            mistakes.append(f"--group: recipe {recipe.name} runs on the CPU pool; leave --group out")
        return None
    groups = {group.name: group for group in environment.groups if team is None or group.name in team.pools}
    if name is None:
        groups = {name: group for name, group in groups.items() if not recipe.unsuited(group)} or groups
    if name is None and len(groups) == 1:
        return next(iter(groups.values()))
    if name is None:
        mistakes.append(f"--group is missing; name one of {', '.join(groups)}")
    elif name not in groups:
        others = {group.name for group in environment.groups}
        what = f"team {team.name} may not use pool group" if team and name in others else "there is no pool group"
        mistakes.append(f"--group: {what} {quoted(name)}{meant(name, groups)}")
    return groups.get(name or "")


def _settings(settings: Sequence[str], mistakes: list[str]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key or not equals:
            mistakes.append(f"--set: {quoted(setting)} is not KEY=VALUE; write it so")
        elif key in seen:
            mistakes.append(f"--set: {quoted(key)[1:-1]} is set twice; keep one")
        else:
            yield key, value
        seen.add(key)
