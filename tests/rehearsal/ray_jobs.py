"""RayJobs and RayClusters for the default environment, as `tpuenv submit` would create them."""

from __future__ import annotations

from typing import Any

import yaml

import environment
from manifests.recipes import recipe_named
from manifests.render import Run, rendered
from tests.synthesis import HERE


def ray(recipe: str, name: str = "train", *, slices: int = 1) -> dict[str, Any]:
    """The object of a run of the recipe."""
    default = environment.load(HERE / "cases" / "default.env", {})
    team, group = default.teams[0], default.groups[0]
    run = Run(recipe=recipe_named(recipe), environment=default, team=team, group=group, slices=slices, name=name)
    made: dict[str, Any] = yaml.safe_load("".join(rendered(run).values()))
    return made
