"""All mistakes in the build files are reported before the first build, with file, line and key."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from rehearsal.cloudbuild.checks import problems
from rehearsal.cloudbuild.images import DOCKER, Images
from rehearsal.cloudbuild.triggers import Trigger, described
from rehearsal.world import ROOT
from tests.synthesis import Synthesis


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "cloudbuild", tmp_path / "cloudbuild")
    return tmp_path


@pytest.fixture(scope="module")
def triggers(synthesis: Synthesis) -> list[Trigger]:
    """Those of the stack."""
    resources = synthesis.stack("pipeline", "pipeline")["resource"]["google_cloudbuild_trigger"].values()
    return [described(values) for values in resources]


def reported(checkout: Path, triggers: list[Trigger]) -> list[str]:
    (builder,) = {trigger.substitutions["_BUILDER"] for trigger in triggers}
    return problems(checkout, triggers, Images(builder=builder))


def edit(checkout: Path, name: str, old: str, new: str) -> None:
    path = checkout / "cloudbuild" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_files_are_good(checkout: Path, triggers: list[Trigger]) -> None:
    assert reported(checkout, triggers) == []


WRONG = {
    "a key in the file that is only read": (
        "builder.yaml", "timeout: 3600s", "timeouts: 3",
        r"cloudbuild/builder.yaml:\d+: timeouts: is not supported by the rehearsal; remove it",
    ),
    "a key in the last build": (
        "drift.yaml", "timeout: 3600s", "timeouts: 3", r"cloudbuild/drift.yaml:\d+: timeouts: is not supported",
    ),
    "an image that is nobody's": (
        "deploy.yaml", "name: ${_BUILDER}", "name: alpine:latest",
        r"cloudbuild/deploy.yaml:5: steps\[0\].name: alpine:latest: is not an image by its digest",
    ),
    "another image in the file that is only read": (
        "builder.yaml", f"name: {DOCKER}", "name: alpine:latest",
        r"cloudbuild/builder.yaml:\d+: steps\[0\].name: alpine:latest: is not an image by its digest",
    ),
    "docker in a build that is run": (
        "drift.yaml", "name: ${_BUILDER}", f"name: {DOCKER}",
        rf"cloudbuild/drift.yaml:\d+: steps\[0\].name: {DOCKER}: needs Docker, which is not",
    ),
    "a program that is not supported": (
        "drift.yaml", "entrypoint: python", "entrypoint: bash",
        r"cloudbuild/drift.yaml:\d+: steps\[0\].name: \$\{_BUILDER\} is bash: of the builder image these are supported",
    ),
    "a value that only the trigger knows": (
        "plan.yaml", ', _RECORDS: ""', "",
        r"cloudbuild/plan.yaml:\d+: substitutions: _RECORDS is used and not declared",
    ),
    "a value that nobody gives": (
        "destroy.yaml", "_FOUNDATION: keep", '_FOUNDATION: ""',
        r"cloudbuild/destroy.yaml:\d+: substitutions._FOUNDATION: is empty, and trigger tpu-destroy does not give it",
    ),
    "a build without a place for its log": (
        "drift.yaml", "CLOUD_LOGGING_ONLY", "GCS_ONLY", r"cloudbuild/drift.yaml: options.logging: is not CLOUD_LOGGING",
    ),
    "a bucket whose name cloud build would not fill in": (
        "drift.yaml", "timeout:", "logsBucket: ${_BUILDER}\ntimeout:",
        r"cloudbuild/drift.yaml:\d+: logsBucket: is not supported by the rehearsal; write options: {logging: CLOUD_LOG",
    ),
    "no yaml": ("plan.yaml", "steps:", "steps: [", r"cloudbuild/plan.yaml:\d+: the file "),
}  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "problem"), WRONG.values(), ids=list(WRONG))
def test_a_mistake_in_any_file_is_reported(
    checkout: Path, triggers: list[Trigger], name: str, old: str, new: str, problem: str
) -> None:
    edit(checkout, name, old, new)
    problems = reported(checkout, triggers)
    assert [line for line in problems if re.match(problem, line)], problems


def test_what_the_trigger_gives_has_to_be_declared(checkout: Path, triggers: list[Trigger]) -> None:
    edit(checkout, "plan.yaml", ', _RECORDS: ""', "")
    edit(checkout, "plan.yaml", '"${_RECORDS}"', "plans")
    (line,) = reported(checkout, triggers)
    assert re.match(
        r"cloudbuild/plan.yaml:\d+: substitutions: _RECORDS is given by trigger tpu-plan and not decl", line
    )


def test_a_step_without_an_image_is_reported(checkout: Path, triggers: list[Trigger]) -> None:
    edit(checkout, "plan.yaml", "  name: ${_BUILDER}\n", "")
    assert "cloudbuild/plan.yaml:5: steps[0]: names no image" in reported(checkout, triggers)


def test_a_file_that_a_trigger_runs_has_to_be_there(checkout: Path, triggers: list[Trigger]) -> None:
    (checkout / "cloudbuild" / "drift.yaml").unlink()
    assert reported(checkout, triggers) == ["cloudbuild/drift.yaml: is not there, and trigger tpu-drift runs it"]


def test_the_mistakes_in_all_files_are_reported_at_once(checkout: Path, triggers: list[Trigger]) -> None:
    for path in (checkout / "cloudbuild").glob("*.yaml"):
        path.write_text(f"queueTtl: 3s\n{path.read_text()}")
    lines = reported(checkout, triggers)
    assert {line.partition(":")[0] for line in lines} == {
        f"cloudbuild/{name}.yaml" for name in ("builder", "images", "test", "plan", "deploy", "destroy", "drift")
    }
