"""The workloads' manifests, as they are rendered."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import environment
from manifests.render import render
from tests.synthesis import HERE


def rendered(folder: Path, **settings: str) -> dict[str, str]:
    """Every rendered manifest by its path under `folder`."""
    wanted = environment.load(HERE / "cases" / "default.env", process_env=settings)
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in render(wanted, folder)}


@pytest.mark.parametrize("namespace", ["0", "null", "true", "1e3"])
def test_a_name_that_yaml_reads_as_something_else_stays_a_name(namespace: str, tmp_path: Path) -> None:
    (text,) = rendered(tmp_path, NAMESPACE=namespace).values()
    assert yaml.safe_load(text)["metadata"]["namespace"] == namespace


def test_what_a_team_of_before_left_is_gone(tmp_path: Path) -> None:
    rendered(tmp_path / "manifests", NAMESPACE="before")
    rendered(tmp_path / "manifests", NAMESPACE="after")
    assert [path.name for path in (tmp_path / "manifests").iterdir()] == ["after"]


def test_no_name_is_left_to_fill_in(tmp_path: Path) -> None:
    assert not any("${" in text for text in rendered(tmp_path).values())
