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


def test_what_somebody_keeps_beside_them_stays(tmp_path: Path) -> None:
    kept = [tmp_path / "notes.txt", tmp_path / "hello-tpu" / "hello-tpu.yaml", tmp_path / "a" / "b" / "mine.yaml"]
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    rendered(tmp_path, NAMESPACE="before")
    rendered(tmp_path, NAMESPACE="after")
    assert [path.read_text() for path in kept] == ["mine"] * 3
    assert not (tmp_path / "before").exists()


def test_no_name_is_left_to_fill_in(tmp_path: Path) -> None:
    assert not any("${" in text for text in rendered(tmp_path).values())
