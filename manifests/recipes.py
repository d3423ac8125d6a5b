"""Finds the recipes: which folders are one, and the texts of their manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from environment.fleet.values import meant
from manifests.parameters_file import described
from manifests.recipe import Recipe, shown
from vocabulary.printable import limited, printable, quoted
from vocabulary.text_file import Unreadable, read_text

__all__ = ["BadManifest", "Recipe", "UnknownRecipe", "all_recipes", "recipe_named"]

FOLDER = Path(__file__).parent
PARAMETERS = "parameters.yaml"
KUSTOMIZATION = "kustomization.yaml"  # what the rendered files of a run are listed in
NAME_REFERENCES = "kustomizeconfig.yaml"  # where one of them names another, if Kustomize does not know of it
KUSTOMIZE_FILES = (KUSTOMIZATION, NAME_REFERENCES)

# With the random end of a run's name that is LONGEST_NAME, the longest name of a run, in manifests/render.py.
_LONGEST_NAME = 33
_NAME = "[a-z]([a-z0-9-]*[a-z0-9])?"
_FILE = "[A-Za-z0-9][A-Za-z0-9._-]*"


class BadManifest(ValueError):
    """A recipe or a run that cannot be rendered. The text has a line for every mistake."""


class UnknownRecipe(ValueError):
    """There is no recipe of that name. The text names the nearest, or all."""


def all_recipes(folder: Path = FOLDER) -> tuple[Recipe, ...]:
    """Every recipe, by name: each folder that has a YAML file. Raises BadManifest with every mistake of all of them."""
    recipes: list[Recipe] = []
    mistakes: list[str] = []
    try:
        for path in sorted(path for path in folder.iterdir() if path.is_dir() and not _is_hidden(path.name)):
            recipe, wrong = _recipe(path)
            mistakes += wrong
            recipes += [recipe] if recipe else []
    except OSError as error:
        raise BadManifest(f"{printable(str(error.filename or folder))}: {error.strerror or error}") from None
    names = [recipe.name for recipe in recipes]
    for recipe in recipes:
        for image in recipe.images:
            if image not in names:
                mistakes.append(
                    f"{shown(recipe.folder, PARAMETERS)}: images: there is no recipe '{image}'{meant(image, names)}"
                )
    if mistakes:
        raise BadManifest(limited(mistakes))
    return tuple(recipes)


def recipe_named(name: str, folder: Path = FOLDER) -> Recipe:
    """The recipe of that name. Raises UnknownRecipe, which names the nearest one, and BadManifest, as all_recipes."""
    recipes = {recipe.name: recipe for recipe in all_recipes(folder)}
    if name in recipes:
        return recipes[name]
    raise UnknownRecipe(f"there is no recipe {quoted(name)}{meant(name, sorted(recipes))}")


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def _recipe(folder: Path) -> tuple[Recipe | None, list[str]]:
    """The recipe in a folder, None if it is none or has a mistake; and the mistakes."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml") and not _is_hidden(path.name))
    files = [path for path in files if path.name != PARAMETERS and path.is_file()]
    if not files:
        return None, []
    mistakes = list(_bad_names(folder, files))
    texts: dict[str, str] = {}
    for file in [] if mistakes else files:
        try:
            texts[file.name] = read_text(file, holds="Kubernetes objects")
        except Unreadable as error:
            mistakes.append(f"{shown(folder, file.name)}: {error}")
    if mistakes:
        return None, mistakes
    recipe, parameters = Recipe(name=folder.name, folder=folder, manifests=texts), folder / PARAMETERS
    return described(recipe, parameters, shown(folder, PARAMETERS)) if parameters.exists() else (recipe, [])


def _bad_names(folder: Path, files: list[Path]) -> Iterator[str]:
    if not re.fullmatch(_NAME, folder.name) or len(folder.name) > _LONGEST_NAME:
        yield (
            f"{printable(str(Path(folder.parent.name, folder.name)))}: cannot name a recipe; rename it to at most "
            f"{_LONGEST_NAME} lower-case letters, digits and hyphens, the first a letter, no hyphen last"
        )
        return
    for file in files:
        if file.name in KUSTOMIZE_FILES:
            yield f"{shown(folder, file.name)}: is what rendered runs get for Kustomize; give the manifest another name"
        elif not re.fullmatch(_FILE, file.name):
            yield f"{shown(folder, file.name)}: rename it to letters, digits, dots, hyphens and underscores"
