"""What synthesis writes into cdktf.out/manifests, replaces there and leaves alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import environment
from manifests.recipes import FOLDER, all_recipes
from manifests.render import render
from manifests.written_files import NotWritten, write_files
from tests.recipe_folders import recipes_with
from tests.synthesis import HERE

HELLO = ("tpu-training/tpu/hello-tpu/jobset.yaml", "tpu-training/tpu/hello-tpu/kustomization.yaml")
SERVE = ("tpu-training/tpu/serve/kustomization.yaml", "tpu-training/tpu/serve/server.yaml")


def written(folder: Path, *, recipes: Path = FOLDER, **settings: str) -> tuple[str, ...]:
    """Writes every rendered manifest; their paths under `folder`, in order."""
    default = environment.load(HERE / "cases" / "default.env", process_env=settings)
    files = write_files(folder, render(default, all_recipes(recipes)))
    return tuple(sorted(str(path.relative_to(folder)) for path in files))


def on_disk(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(str(path.relative_to(folder)) for path in folder.rglob("*.yaml")))


def test_what_a_team_of_before_left_is_gone(tmp_path: Path) -> None:
    written(tmp_path / "manifests", NAMESPACE="before")
    written(tmp_path / "manifests", NAMESPACE="after")
    assert [path.name for path in (tmp_path / "manifests").iterdir() if path.is_dir()] == ["after"]


def test_a_single_file_that_an_earlier_version_wrote_for_a_recipe_is_replaced_by_its_folder(tmp_path: Path) -> None:
    write_files(tmp_path, {"tpu-training/tpu/hello-tpu.yaml": "a: 1\n"})
    assert json.loads((tmp_path / ".rendered").read_text()) == ["tpu-training/tpu/hello-tpu.yaml"]
    written(tmp_path, recipes=recipes_with(tmp_path / "recipes", "serve", server="a: 1\n"))
    assert on_disk(tmp_path / "tpu-training") == tuple(path.removeprefix("tpu-training/") for path in (*HELLO, *SERVE))


def test_what_somebody_keeps_beside_them_stays(tmp_path: Path) -> None:
    kept = [tmp_path / "notes.txt", tmp_path / "hello-tpu" / "hello-tpu.yaml", tmp_path / "a" / "b" / "mine.yaml"]
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    written(tmp_path, NAMESPACE="before")
    written(tmp_path, NAMESPACE="after")
    assert [path.read_text() for path in kept] == ["mine"] * 3
    assert not (tmp_path / "before").exists()


def test_a_file_or_recipe_that_is_gone_goes_from_the_rendered_ones(tmp_path: Path) -> None:
    recipes = recipes_with(tmp_path, "serve", server="a: 1\n", client="a: 2\n")
    written(tmp_path / "out", recipes=recipes)
    (recipes / "serve" / "client.yaml").unlink()
    assert written(tmp_path / "out", recipes=recipes) == (*HELLO, *SERVE) == on_disk(tmp_path / "out")
    shutil.rmtree(recipes / "serve")
    assert written(tmp_path / "out", recipes=recipes) == HELLO == on_disk(tmp_path / "out")


def test_a_file_takes_the_place_of_a_folder_that_an_earlier_run_wrote_and_back(tmp_path: Path) -> None:
    for path in ("team/a.yaml/b.yaml", "team/a.yaml", "team/a.yaml/b.yaml"):
        write_files(tmp_path, {path: "a: 1\n"})
        assert [path] == [str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.yaml") if file.is_file()]


def test_a_file_that_no_run_wrote_is_never_replaced(tmp_path: Path) -> None:
    recipes = recipes_with(tmp_path, "serve", server="a: 1\n")
    (recipes / "serve").rename(tmp_path / "serve")
    written(tmp_path / "out", recipes=recipes)
    mine = tmp_path / "out" / "tpu-training" / "tpu" / "serve" / "server.yaml"
    mine.parent.mkdir()
    (tmp_path / "mine").write_text("mine")
    mine.symlink_to(tmp_path / "mine")
    (tmp_path / "serve").rename(recipes / "serve")
    with pytest.raises(NotWritten, match=r"server\.yaml: not written by an earlier synthesis; move it away$"):
        written(tmp_path / "out", recipes=recipes)
    mine.unlink()
    mine.write_text("a: 1\n")
    written(tmp_path / "out", recipes=recipes)
    mine.unlink()
    mine.symlink_to(tmp_path / "mine")
    written(tmp_path / "out", recipes=recipes)
    assert ((tmp_path / "mine").read_text(), mine.read_text(), mine.is_symlink()) == ("mine", "a: 1\n", False)
    assert on_disk(tmp_path / "out") == (*HELLO, *SERVE)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param("tpu/a.yaml\n", id="lines"),
        pytest.param("{}", id="object"),
        pytest.param("[1]", id="number"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('["../mine", "/", "\\u0000", "."]', id="outside"),
        pytest.param("\udcff", id="bytes"),
    ],
)
def test_a_damaged_record_is_none_and_deletes_nothing(record: str, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    written(tmp_path / "out")
    (tmp_path / "out" / ".rendered").write_text(record, errors="surrogateescape")
    written(tmp_path / "out")
    assert (tmp_path / "mine").read_text() == "mine"


def test_what_the_file_system_refuses_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(NotWritten, match=r"/out: File exists$"):
        written(tmp_path / "out")
