"""What the recipes' images are built from is pinned, and what needs no root has none."""

from __future__ import annotations

import re
import shlex

import pytest

from manifests.images import recipes_with_an_image
from manifests.recipes import FOLDER, recipe_named

EVERY_IMAGE = pytest.mark.parametrize("name", recipes_with_an_image())


def instructions(name: str, keyword: str) -> list[list[str]]:
    """The words after each instruction of that keyword."""
    text = (FOLDER / name / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.startswith(f"{keyword} ")]
    return [shlex.split(line)[1:] for line in lines]


@EVERY_IMAGE
def test_every_package_is_locked_with_its_hashes(name: str) -> None:
    (install,) = instructions(name, "RUN")
    assert install[:2] == ["pip", "install"]
    assert "--require-hashes" in install
    packages = [word for word in install[2:] if not word.startswith("-")]
    assert [word.lstrip("/") for word in packages] == ["requirements.txt"]


@EVERY_IMAGE
def test_an_image_without_tpus_does_not_run_as_root(name: str) -> None:
    users = [user for user, *_ in instructions(name, "USER")]
    if not recipe_named(name).tpu:
        assert users, "a numeric user, which a pod with runAsNonRoot can check"
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])
