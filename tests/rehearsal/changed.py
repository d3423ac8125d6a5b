"""Environments that the real Terraform deploys into a fake cloud and changes, stack by stack, without the cdktf CLI."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rehearsal.cloud import Object
from rehearsal.google.gke import POOL
from rehearsal.google.network import CLUSTER
from rehearsal.kubernetes.api import Api
from rehearsal.world import World
from tests.change_cases import Described
from tests.rehearsal.deployed import stacks_in, submit, workloads
from tests.rehearsal.saved import restore, save

_ACTIONS = {"create": "create", "update": "update", "replace": "replace", "delete": "destroy"}


class Stopped(Exception):
    """Terraform ended with an error; `words` is all that it said about it, in one line."""

    def __init__(self, stack: str, said: str) -> None:
        super().__init__(f"{stack}: {said}")
        self.stack = stack
        self.done: Mapping[str, Mapping[str, str]] = {}
        diagnostics = [line["diagnostic"] for line in _lines(said) if line.get("type") == "diagnostic"]
        texts = [f"{item['summary']}: {item.get('detail')}" for item in diagnostics] or [said]
        self.words = " ".join(" ".join(texts).split())


@dataclass
class Deployed:
    """Environments are deployed into one fake cloud, each once: later it is put back to how it was then. So are the
    first stacks that two have in common.

    `folder` takes what is synthesized and the copies of the cloud; `world` must be empty at first.
    """

    world: World
    folder: Path
    synthesized: dict[str, Path] = field(default_factory=dict)
    kept: dict[str, Path] = field(default_factory=dict)
    first: dict[tuple[bytes, ...], Path] = field(default_factory=dict)  # with the first stacks alone, by their JSON
    applied: dict[str, bytes] = field(default_factory=dict)  # the JSON of the stacks that are deployed

    def __post_init__(self) -> None:
        self.first[()] = save(self.world.cloud, self.folder / "first-0.db")

    def output(self, described: Described) -> Path:
        """Its stacks and manifests."""
        if described.key not in self.synthesized:
            self.synthesized[described.key] = described.synthesize(self.folder / f"output-{len(self.synthesized)}")
        return self.synthesized[described.key]

    def stacks(self, described: Described) -> list[str]:
        """In the order of their deployment."""
        return stacks_in(self.output(described))

    def begin(self, described: Described) -> None:
        """The environment is deployed, nothing else is, and every team has jobs on every slice that it may use."""
        if described.key in self.kept:
            restore(self.world.cloud, self.kept[described.key])
            self.applied = {stack: self._json(described, stack) for stack in self.stacks(described)}
            return
        stacks = self.stacks(described)
        texts = tuple(self._json(described, stack) for stack in stacks)
        done = max(number for number in range(len(stacks) + 1) if texts[:number] in self.first)
        restore(self.world.cloud, self.first[texts[:done]])
        self.applied = dict(zip(stacks[:done], texts[:done], strict=True))
        for number, stack in enumerate(stacks[done:], start=done + 1):
            self._deploy(described, stack)
            self.first[texts[:number]] = save(self.world.cloud, self.folder / f"first-{len(self.first)}.db")
        submit(self.api, self.output(described))
        self.kept[described.key] = save(self.world.cloud, self.folder / f"kept-{len(self.kept)}.db")

    def deploy(self, described: Described) -> dict[str, Mapping[str, str]]:
        """Deploys the stacks whose JSON has changed, in their order. The actions by stack and address.

        Raises Stopped, which has the actions of the stacks before.
        """
        done: dict[str, Mapping[str, str]] = {}
        try:
            for stack in self.stacks(described):
                if actions := self._deploy(described, stack):
                    done[stack] = actions
        except Stopped as stopped:
            stopped.done = done
            raise
        return done

    def _deploy(self, described: Described, stack: str) -> dict[str, str]:
        """One stack, if its JSON has changed; the actions by address. Raises Stopped."""
        text = self._json(described, stack)
        actions = {} if self.applied.pop(stack, None) == text else self.plan(described, stack)
        if actions:
            self.terraform(stack, "apply", "-json", "planned")
        self.applied[stack] = text
        return actions

    def plan(self, described: Described, stack: str) -> dict[str, str]:
        """What Terraform would do, by address. Raises Stopped."""
        self._put(described, stack)
        said = _lines(self.terraform(stack, "plan", "-json", "-out=planned"))
        changes = [line["change"] for line in said if line.get("type") == "planned_change"]
        return {
            change["resource"]["addr"]: _ACTIONS[change["action"]] for change in changes if change["action"] in _ACTIONS
        }

    def _json(self, described: Described, stack: str) -> bytes:
        return (self.output(described) / "stacks" / stack / "cdk.tf.json").read_bytes()

    def _put(self, described: Described, stack: str) -> None:
        """The stack's JSON, and its charts, where Terraform works."""
        source, folder = self.output(described) / "stacks" / stack, self.world.output / "stacks" / stack
        ready = (folder / ".terraform").exists() and _backend(folder) == _backend(source)
        shutil.copytree(source, folder, dirs_exist_ok=True)
        if not ready:
            self.terraform(stack, "init", "-reconfigure")

    def terraform(self, stack: str, *arguments: str) -> str:
        """What it said. Raises Stopped."""
        done = subprocess.run(
            [str(self.world.folder / "terraform-recorded"), *arguments, "-no-color"],
            cwd=self.world.output / "stacks" / stack,
            env=self.world.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Stopped(stack, done.stdout + done.stderr)
        return done.stdout

    @property
    def api(self) -> Api:
        (cluster,) = self.world.cloud.find(CLUSTER)
        return Api(self.world.cloud, cluster.name)

    @property
    def pools(self) -> dict[str, Object]:
        """Every node pool, by its name."""
        return {item.name.rsplit("/", 1)[-1]: item for item in self.world.cloud.find(POOL)}

    @property
    def running(self) -> dict[str, dict[str, Any]]:
        """Every admitted Workload, by namespace and name."""
        admitted = [workload for workload in workloads(self.api) if workload.get("status", {}).get("admission")]
        return {f"{item['metadata']['namespace']}/{item['metadata']['name']}": item for item in admitted}

    @property
    def things(self) -> dict[tuple[str, str], str]:
        """All that exists but the states."""
        return {key: value for key, value in self.world.cloud.snapshot().items() if not key[0].startswith("blob ")}


def _lines(said: str) -> list[dict[str, Any]]:
    """What Terraform says with -json. https://developer.hashicorp.com/terraform/internals/machine-readable-ui"""
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def _backend(folder: Path) -> Any:
    return json.loads((folder / "cdk.tf.json").read_text(encoding="utf-8"))["terraform"]["backend"]
