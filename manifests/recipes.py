"""Finds the recipes: which folders are one, and the texts of their manifests."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
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
    folders = _folders(folder)
    return _recipes(folders.values(), names=folders.keys())


def recipe_named(name: str, folder: Path = FOLDER) -> Recipe:
    """The recipe of that name. Raises UnknownRecipe, which names the nearest, and BadManifest with its mistakes."""
    folders = _folders(folder)
    if name not in folders:
        raise UnknownRecipe(f"there is no recipe {quoted(name)}{meant(name, list(folders))}")
    (recipe,) = _recipes([folders[name]], names=folders.keys())
    return recipe


def _folders(folder: Path) -> dict[str, Path]:
    """The folder of every recipe, by its name."""
    with _unreadable_is_bad():
        paths = sorted(path for path in folder.iterdir() if path.is_dir() and not _is_hidden(path.name))
        return {path.name: path for path in paths if _manifests(path)}


def _recipes(folders: Iterable[Path], *, names: Collection[str]) -> tuple[Recipe, ...]:
    """The recipes of those folders. `names` are those of all recipes."""
    recipes: list[Recipe] = []
    mistakes: list[str] = []
    with _unreadable_is_bad():
        for path in folders:
            recipe, wrong = _recipe(path)
            mistakes += wrong
            recipes += [recipe] if recipe else []
    for recipe in recipes:
        for image in recipe.images:
            if image not in names:
                mistakes.append(
                    f"{shown(recipe.folder, PARAMETERS)}: images: there is no recipe '{image}'{meant(image, names)}"
                )
    if mistakes:
        raise BadManifest(limited(mistakes))
    return tuple(recipes)


@contextmanager
def _unreadable_is_bad() -> Iterator[None]:
    """Raises BadManifest for a folder or a file that cannot be read."""
    try:
        yield
    except OSError as error:
        raise BadManifest(f"{printable(str(error.filename))}: {error.strerror or error}") from None


def _manifests(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml") and not _is_hidden(path.name))
    return [path for path in files if path.name != PARAMETERS and path.is_file()]


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def _recipe(folder: Path) -> tuple[Recipe | None, list[str]]:
    """The recipe in a folder, None if it has a mistake; and the mistakes."""
    files = _manifests(folder)
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
