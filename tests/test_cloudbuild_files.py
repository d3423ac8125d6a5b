"""The files of cloudbuild/ are what Cloud Build takes, say what their triggers give, and download nothing unchecked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from install.steps import ROOT
from rehearsal.cloudbuild.config import Config, read
from rehearsal.cloudbuild.images import DOCKER
from tests.synthesis import Synthesis

FOLDER = ROOT / "cloudbuild"
BUILDER = FOLDER / "builder"
FILES = sorted(FOLDER.glob("*.yaml"))
BUILDS = ("test", "plan", "deploy", "destroy", "drift")
PROVIDERS = ("google", "kubernetes", "helm")


def build(name: str) -> Config:
    return read(FOLDER / f"{name}.yaml")


def test_there_is_a_file_for_every_trigger_and_two_that_a_person_starts() -> None:
    assert {path.stem for path in FILES} == {*BUILDS, "builder", "images"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_short_and_ends_in_time(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 30
    assert "\ntimeout: " in text, "one of our own; Cloud Build's is an hour"
    assert all(step.id_ for step in read(path).steps)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_step_is_a_shell_or_hides_that_it_failed(path: Path) -> None:
    """What a step runs is a program and its arguments, so nothing between them can swallow an exit code or wait."""
    for step in read(path).steps:
        assert (step.name, step.entrypoint) in {("${_BUILDER}", "python"), (DOCKER, "")}
        assert not {"-c", "sh", "bash", "sleep", "curl"} & set(step.args)


@pytest.mark.parametrize("name", BUILDS)
def test_every_build_runs_in_the_builder_image_and_keeps_its_log(name: str) -> None:
    file = build(name)
    assert {step.name for step in file.steps} == {"${_BUILDER}"}
    assert file.logging == "CLOUD_LOGGING_ONLY"


@pytest.mark.parametrize("name", BUILDS)
def test_a_file_declares_all_that_its_trigger_gives(name: str, synthesis: Synthesis) -> None:
    """What the trigger does not give has a default that means something."""
    triggers = synthesis.stack("pipeline", "pipeline")["resource"]["google_cloudbuild_trigger"].values()
    (trigger,) = [trigger for trigger in triggers if trigger["name"].endswith(f"-{name}")]
    declared = build(name).substitutions
    assert trigger["substitutions"].keys() <= declared.keys()
    assert all(declared[key] for key in declared.keys() - trigger["substitutions"].keys())
    file = trigger.get("filename") or trigger["git_file_source"]["path"]
    assert file == f"cloudbuild/{name}.yaml"


def test_pull_requests_are_tested_by_the_fast_tests_but_those_of_the_published_settings(
    pytestconfig: pytest.Config,
) -> None:
    fast = pytestconfig.getini("addopts")
    (step,) = build("test").steps
    assert step.args[step.args.index("-m", 1) + 1] == f"{fast[fast.index('-m') + 1]} and not published"


@pytest.mark.parametrize("name", ["plan", "drift"])
def test_what_runs_as_the_plan_account_runs_no_test_and_applies_nothing(name: str) -> None:
    words = {word for step in build(name).steps for word in step.args}
    assert not words & {"pytest", "apply", "deploy", "destroy", "recover"}


def dockerfile() -> list[str]:
    text = (BUILDER / "Dockerfile").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_the_image_installs_with_our_setup_and_downloads_nothing_else() -> None:
    runs = [line.removeprefix("RUN ") for line in dockerfile() if line.startswith("RUN ")]
    assert runs[0] == "sh install/run"
    programs = {part.split()[0] for run in runs for part in run.split(" && ")}
    assert programs <= {"sh", "terraform", "mv", "rm"}
    assert not [line for line in dockerfile() if line.startswith("ADD ")]


def test_what_the_image_copies_is_there_and_enough_for_the_setup() -> None:
    sources = [word for line in dockerfile() if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert all((ROOT / source).exists() for source in sources)
    assert {
        "requirements.txt",
        "package.json",
        "package-lock.json",
        "install",
        "cdktf_patches",
        "stacks/bindings.py",
    } <= set(sources)


def test_terraform_in_the_image_has_no_registry() -> None:
    text = (BUILDER / "terraformrc").read_text(encoding="utf-8")
    assert "filesystem_mirror" in text
    assert "direct" not in text
    assert "network_mirror" not in text
    lines = dockerfile()
    assert next(line for line in lines if line.startswith("ENV TF_CLI_CONFIG_FILE=")) in lines[-4:]


def locked() -> dict[str, tuple[str, list[str]]]:
    text = (BUILDER / "providers" / ".terraform.lock.hcl").read_text(encoding="utf-8")
    blocks = re.findall(r'provider "registry.terraform.io/hashicorp/(\w+)" \{(.*?)\n\}', text, re.DOTALL)
    return {
        name: (re.findall(r'version\s+= "(.*)"', block)[0], re.findall(r'"zh:([0-9a-f]{64})"', block))
        for name, block in blocks
    }


def test_the_providers_in_the_image_are_those_of_the_stacks(synthesis: Synthesis) -> None:
    required = {}
    for stack in ("pipeline", "queues"):
        for name, provider in synthesis.stack("pipeline", stack)["terraform"]["required_providers"].items():
            required[name] = provider["version"]
    assert {name: version for name, (version, _) in locked().items()} == required
    written = (BUILDER / "providers" / "providers.tf").read_text(encoding="utf-8")
    assert dict(re.findall(r'(\w+)\s+= \{ source = "hashicorp/\w+", version = "(.*)" \}', written)) == required


def test_the_lock_holds_the_digests_of_a_whole_release_each() -> None:
    """A release is eleven platforms and a manifest; the manifest says the protocol's version and nothing else."""
    locks = locked()
    assert set(locks) == set(PROVIDERS)
    assert {len(set(hashes)) for _, hashes in locks.values()} == {12}
    assert len(set.intersection(*(set(hashes) for _, hashes in locks.values()))) == 1
