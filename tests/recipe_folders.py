"""Folders of recipes for tests: copies of manifests/ with a recipe more."""

from __future__ import annotations

import shutil
from pathlib import Path

from manifests.recipes import FOLDER


def recipes_with(folder: Path, name: str, **files: str) -> Path:
    """A folder `manifests` below `folder`, with hello-tpu and a recipe more of these YAML files, by stem."""
    recipes = folder / "manifests"
    shutil.copytree(FOLDER / "hello-tpu", recipes / "hello-tpu", dirs_exist_ok=True)
    (recipes / name).mkdir(parents=True)
    for stem, text in files.items():
        (recipes / name / f"{stem}.yaml").write_text(text, encoding="utf-8")
    return recipes
