"""`tpuenv rehearse-pipeline`: what a person meets before it starts, and that it fails when a build does."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import environment
from environment import Environment, project
from tests import published
from tpuenv.main import main
from tpuenv.rehearsals.commit import commit_of, with_pipeline
from tpuenv.rehearsals.pipeline import PipelineRehearsal
from tpuenv.rehearsals.world import open_world

needs_terraform = pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH")


def configured(folder: Path, **settings: str) -> Environment:
    return environment.load(published.folder(folder) / "vars.env", settings)


def test_wrong_settings_are_reported_in_a_line_each_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TPU_TYPE", "v6e-17")
    assert main(["rehearse-pipeline", "--folder", str(tmp_path / "w")]) == 2
    assert capsys.readouterr().err.startswith("TPU_TYPE: unknown TPU type 'v6e-17'")
    assert not (tmp_path / "w").exists()


def test_a_repository_and_an_image_are_made_up_only_where_there_is_none(tmp_path: Path) -> None:
    made_up = with_pipeline(configured(tmp_path), {})
    loaded = environment.load(tmp_path / "vars.env", made_up)
    assert loaded.settings.build_repository and loaded.settings.builder_image
    assert with_pipeline(loaded, {"TPU_TYPE": "v6e-8"}) == {**made_up, "TPU_TYPE": "v6e-8"}


def test_what_differs_from_vars_env_is_committed_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build knows no setting but those of its commit."""
    monkeypatch.setenv(project.FOLDER, str(published.folder(tmp_path)))
    before = (tmp_path / "vars.env").read_text()
    settings = {"TPU_TYPE": "v5p-128", **with_pipeline(configured(tmp_path), {})}
    changed = commit_of(settings)
    assert list(changed) == ["vars.env"]
    (tmp_path / "vars.env").write_text(changed["vars.env"])
    assert environment.load(tmp_path / "vars.env", {}).settings.tpu_type == "v5p-128"
    assert len(changed["vars.env"].splitlines()) == len(before.splitlines())


def test_a_fleet_is_committed_with_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(project.FOLDER, str(published.folder(tmp_path)))
    (tmp_path / "fleet.yaml").write_text("tpu_pools: {}\n")
    assert commit_of({})["fleet.yaml"] == "tpu_pools: {}\n"


@pytest.mark.slow
def test_all_build_files_are_checked_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "checkout"
    shutil.copytree(project.ROOT / "cloudbuild", root / "cloudbuild")
    (root / "main.py").symlink_to(project.ROOT / "main.py")
    for name, old, new in (("builder", "timeout: 3600s", "timeouts: 3"), ("drift", "${_BUILDER}", "alpine:latest")):
        path = root / "cloudbuild" / f"{name}.yaml"
        path.write_text(path.read_text().replace(old, new))
    monkeypatch.setenv(project.FOLDER, str(published.folder(tmp_path)))
    monkeypatch.setattr(project, "ROOT", root)
    assert main(["rehearse-pipeline", "--folder", str(tmp_path / "w")]) == 1
    printed = capsys.readouterr().err
    assert "cloudbuild/builder.yaml:15: timeouts: is not supported" in printed
    assert "cloudbuild/drift.yaml:5: steps[0].name: alpine:latest: is not an image by its digest" in printed
    assert not (tmp_path / "w").exists()


@pytest.mark.slow
@needs_terraform
def test_a_pull_request_whose_tests_fail_is_not_planned_and_nothing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "settings").mkdir()
    monkeypatch.setenv(project.FOLDER, str(published.folder(tmp_path / "settings")))
    settings = with_pipeline(environment.load(tmp_path / "settings" / "vars.env", {}), {})
    environment_ = environment.load(tmp_path / "settings" / "vars.env", settings)
    tests = (project.ROOT / "cloudbuild" / "test.yaml").read_text(encoding="utf-8")
    failing = re.sub(r"args: \[-m, pytest.*\]", "args: [-c, import sys; sys.exit(3)]", tests)
    changed = {**commit_of(settings), "cloudbuild/test.yaml": failing}
    with open_world(environment_, tmp_path / "w", {**settings, project.FOLDER: str(tmp_path / "settings")}) as world:
        assert PipelineRehearsal(world, environment_, changed).run() == 1
    printed = capfd.readouterr().out
    assert "NOT OK: tpu-test: FAILURE: Step #0 - 'test' failed: exit status 3" in printed
    assert "Merged" not in printed
