"""The commit that is rehearsed: this checkout with a pipeline in its settings, checked as builds read it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from environment import Environment, project
from environment.names import PIPELINE
from tpuenv.failure import Failed
from tpuenv.terraform.stacks import synthesize


def check_files(environment: Environment, settings: Mapping[str, str]) -> None:
    """Checks all of cloudbuild/ with the triggers of these settings. Raises Failed with everything that is wrong."""
    from rehearsal.cloudbuild.checks import problems
    from rehearsal.cloudbuild.images import Images
    from rehearsal.cloudbuild.triggers import TRIGGER, described

    with tempfile.TemporaryDirectory() as output:
        stacks = synthesize(Path(output), **settings)
        (pipeline,) = [stack.configuration for stack in stacks if stack.name == PIPELINE]
    triggers = [described(values) for values in pipeline["resource"][TRIGGER].values()]
    if wrong := problems(project.ROOT, triggers, Images(builder=environment.settings.builder_image)):
        raise Failed("\n".join(wrong))


def with_pipeline(environment: Environment, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that differ from vars.env, and a repository and a builder image where that has none."""
    own, names = environment.settings, environment.names
    place = f"projects/{own.project_id}/locations/{own.region}"
    repository = own.build_repository or f"{place}/connections/rehearsal/repositories/tpu-environment"
    image = own.builder_image or f"{names.builder_registry_url}/builder@sha256:{'0' * 64}"
    return {**settings, "BUILD_REPOSITORY": repository, "BUILDER_IMAGE": image}


def commit_of(settings: Mapping[str, str]) -> dict[str, str]:
    """The text of the files that these settings change: builds read nothing but what is in the repository."""
    folder = project.folder()
    text = (folder / "vars.env").read_text(encoding="utf-8")
    for key, value in settings.items():
        line = f"{key}={value}"
        old = re.search(rf"^{key}=.*$", text, re.MULTILINE)
        text = text[: old.start()] + line + text[old.end() :] if old else f"{text.rstrip()}\n{line}\n"
    fleet = folder / "fleet.yaml"
    return {"vars.env": text, **({"fleet.yaml": fleet.read_text(encoding="utf-8")} if fleet.exists() else {})}
