"""Runs of recipes: of those that are there, and of recipes that a test writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import environment
from environment import Environment, PoolGroup, Team
from environment.fleet.quotas import most_slices, slices_of_teams
from environment.tpu import slice_for
from manifests.recipes import (
    Recipe,
    all_recipes,
    recipe_named,
)
from manifests.render import Run
from tests.recipe_folders import recipes_with
from tests.synthesis import HERE
from tests.yaml_files import documents_in

RECIPES = all_recipes()
DEFAULT = environment.load(HERE / "cases" / "default.env", {})


def group_for(recipe: Recipe) -> PoolGroup | None:
    """The pool group of the default environment, or where its slices do not suit the recipe, with others."""
    (group,) = DEFAULT.groups
    of_types = (dataclasses.replace(group, slice=slice_for(name)) for name in ("v6e-16", "v5litepod-32", "v6e-4"))
    return next(other for other in of_types if not recipe.unsuited(other)) if recipe.tpu else None


def run_of(recipe: Recipe, **fields: Any) -> Run:
    """A run of the recipe in the default environment, with an example of each key that must be set."""
    settings = {**recipe.required, **fields.pop("settings", {})}
    fields.setdefault("group", group_for(recipe))
    return Run(recipe=recipe, environment=DEFAULT, team=DEFAULT.teams[0], settings=settings, **fields)


def runs(environment_: Environment, recipe: Recipe) -> Iterator[tuple[Run, bool]]:
    """Of every team, for every pool group that it may use, on one slice and on the most that it can have.

    With each run, whether the team can ever have that many slices.
    """
    shared = slices_of_teams(environment_.groups, environment_.teams)
    for team in environment_.teams:
        run = Run(recipe=recipe, environment=environment_, team=team, settings=recipe.required)
        if not recipe.tpu:
            yield run, True
        for group in environment_.groups if recipe.tpu else ():
            most = min(most_slices(team, environment_.teams, shared[group.name]), recipe.most_slices(group))
            able = group.name in suiting(environment_, recipe, team)
            for slices in sorted({1, max(1, most)}) if able else ():
                yield dataclasses.replace(run, group=group, slices=slices), slices <= most


def suiting(environment_: Environment, recipe: Recipe, team: Team) -> Iterator[str]:
    """The names of the pool groups that the team may use and that suit the recipe."""
    for group in environment_.groups:
        if group.name in team.pools and not recipe.unsuited(group):
            yield group.name


def objects(texts: dict[str, str]) -> list[dict[str, Any]]:
    return [item for text in texts.values() for item in documents_in(text)]


def new_recipe(folder: Path, parameters: str, manifest: str = "a: 1\n") -> Recipe:
    """A recipe with this parameters.yaml and one manifest."""
    return recipe_named("serve", recipes_with(folder, "serve", server=manifest, parameters=parameters))
