"""What `tpuenv rehearse-pipeline` commits: this checkout with a pipeline in its settings, checked as builds read it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from environment import Environment, project
from tpuenv.failure import Failed
from tpuenv.terraform.stacks import PIPELINE, synthesize


def check_files(wanted: Environment, settings: Mapping[str, str]) -> None:
    """All of cloudbuild/ with the triggers that these settings make. Raises Failed with everything that is wrong."""
    from rehearsal.cloudbuild.checks import problems
    from rehearsal.cloudbuild.images import Images
    from rehearsal.cloudbuild.triggers import TRIGGER, described

    with tempfile.TemporaryDirectory() as output:
        stacks = synthesize(Path(output), **settings)
        (pipeline,) = [stack.configuration for stack in stacks if stack.name == PIPELINE]
    made = [described(values) for values in pipeline["resource"][TRIGGER].values()]
    if found := problems(project.ROOT, made, Images(builder=wanted.settings.builder_image)):
        raise Failed("\n".join(found))


def with_pipeline(wanted: Environment, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that differ from vars.env, and a repository and a builder image where that has none."""
    place = f"projects/{wanted.settings.project_id}/locations/{wanted.settings.region}"
    repository = wanted.settings.build_repository or f"{place}/connections/rehearsal/repositories/tpu-environment"
    image = wanted.settings.builder_image or f"{wanted.names.registry_url}/builder@sha256:{'0' * 64}"
    return {**settings, "BUILD_REPOSITORY": repository, "BUILDER_IMAGE": image}


def commit_of(settings: Mapping[str, str]) -> dict[str, str]:
    """The files that a person changes before committing: builds know nothing but what is in the repository."""
    folder = project.folder()
    text = (folder / "vars.env").read_text(encoding="utf-8")
    for key, value in settings.items():
        line = f"{key}={value}"
        found = re.search(rf"^{key}=.*$", text, re.MULTILINE)
        text = text[: found.start()] + line + text[found.end() :] if found else f"{text.rstrip()}\n{line}\n"
    fleet = folder / "fleet.yaml"
    return {"vars.env": text, **({"fleet.yaml": fleet.read_text(encoding="utf-8")} if fleet.exists() else {})}
