"""Synthesizes the cases of tests/cases, each once a session, the way main.py does."""

from __future__ import annotations

import fcntl
import json
from functools import cache
from pathlib import Path
from typing import Any

import environment
from environment import Environment
from manifests.recipes import KUSTOMIZE_FILES
from manifests.render import render
from manifests.written_files import write_files
from stacks import app
from tests.yaml_files import documents_in

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CASES = sorted(path.stem for path in (HERE / "cases").glob("*.env"))
STACKS = [*app.STACKS]


def stacks_of(case: str) -> list[str]:
    """The stacks of a case, in their order: one with a repository has the pipeline too, one with TPU VMs theirs;
    Autopilot has no node pools, and a setting switches observability off.
    """
    fleet = HERE / "cases" / f"{case}.fleet.yaml"
    settings = (HERE / "cases" / f"{case}.env").read_text(encoding="utf-8")
    has_tpu_vms = fleet.exists() and "\ntpu_vms:" in fleet.read_text(encoding="utf-8")
    without = {app.NODE_POOLS} if "\nCLUSTER_MODE=autopilot" in settings else set()
    without |= {app.OBSERVABILITY} if "\nOBSERVABILITY=false" in settings else set()  # type: ignore[attr-defined]
    first, *rest = [stack for stack in STACKS if stack not in without]
    with_pipeline = [first, *(["pipeline"] if "\nBUILD_REPOSITORY=" in settings else []), *rest]
    return [*with_pipeline, "tpu-vms"] if has_tpu_vms else with_pipeline


EVERY_STACK = [(case, stack) for case in CASES for stack in stacks_of(case)]


class Synthesis:
    """The JSON of stacks and the YAML of manifests, by case."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._synthesized = cache(self._synthesize)

    def environment_of(self, path: Path) -> Environment:
        """Of a vars.env, with the fleet.yaml of the same name beside it, if there is one."""
        return environment.load(path, process_env={}, fleet=path.with_suffix(".fleet.yaml"))

    def environment(self, case: str) -> Environment:
        return self.environment_of(HERE / "cases" / f"{case}.env")

    def folder(self, case: str) -> Path:
        return self._synthesized(case)

    def stack(self, case: str, stack: str) -> dict[str, Any]:
        return read_stack(self.folder(case), stack)

    def text(self, case: str, stack: str) -> str:
        return _text(self.folder(case), stack)

    def manifests(self, case: str) -> dict[Path, str]:
        """Rendered manifests, and what Kustomize reads beside them, by their path under `manifests`."""
        root = self.folder(case) / "manifests"
        return {path.relative_to(root): path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.yaml"))}

    def resources(self, case: str, stack: str, type_: str) -> dict[str, Any]:
        """Resources of a type by their logical id."""
        return dict(self.stack(case, stack).get("resource", {}).get(type_, {}))

    def kubernetes_objects(self, case: str) -> list[dict[str, Any]]:
        """Every Kubernetes object that the stacks and manifests of a case hold."""
        objects = [
            resource["manifest"]
            for stack in stacks_of(case)
            for resource in self.resources(case, stack, "kubernetes_manifest").values()
        ]
        texts = (text for path, text in self.manifests(case).items() if path.name not in KUSTOMIZE_FILES)
        return objects + [item for text in texts for item in documents_in(text)]

    def _synthesize(self, case: str) -> Path:
        """The folder may be of several test processes: the first that needs a case synthesizes it."""
        folder, done = self._folder / case, self._folder / f"{case}.done"
        with (self._folder / f"{case}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                synthesize(self.environment(case), folder)
                done.touch()
        return folder


def synthesize(environment_: Environment, folder: Path) -> Path:
    """Stacks and manifests of an environment, in `folder`."""
    app.write_stacks(environment_, folder)
    write_files(folder / "manifests", render(environment_))
    return folder


def read_stack(folder: Path, stack: str) -> dict[str, Any]:
    """A stack's JSON without cdktf's own notes (construct paths, versions)."""
    return dict(_without_notes(json.loads(_text(folder, stack))))


def texts(folder: Path) -> dict[str, str]:
    """The text of every stack that there is but the pipeline, by stack."""
    return {stack: _text(folder, stack) for stack in STACKS if (folder / "stacks" / stack).exists()}


def _text(folder: Path, stack: str) -> str:
    return (folder / "stacks" / stack / "cdk.tf.json").read_text(encoding="utf-8")


def _without_notes(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_notes(inner) for key, inner in value.items() if key != "//"}
    return [_without_notes(inner) for inner in value] if isinstance(value, list) else value
