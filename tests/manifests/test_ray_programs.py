"""What the recipes with Ray have in common is the same in each."""

from __future__ import annotations

import re

import pytest

from manifests.recipes import FOLDER

PROGRAMS = pytest.mark.parametrize("recipe", ["ray-jax", "ray-maxtext", "ray-pytorch"])


@PROGRAMS
def test_the_slices_of_the_cluster_are_read_by_the_same_file(recipe: str) -> None:
    """An image is built from one folder, so every folder has it."""
    file = "tpu_slices.py"
    assert (FOLDER / recipe / file).read_bytes() == (FOLDER / "ray-jax" / file).read_bytes()


@PROGRAMS
def test_the_image_has_the_version_of_ray_that_kuberay_is_given(recipe: str) -> None:
    lock = (FOLDER / recipe / "requirements.txt").read_text(encoding="utf-8")
    manifest = (FOLDER / recipe / "rayjob.yaml").read_text(encoding="utf-8")
    (locked,) = re.findall(r"^ray==(\S+)", lock, re.MULTILINE)
    assert re.findall(r'rayVersion: "(.*)"', manifest) == [locked]
