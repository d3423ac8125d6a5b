"""The stacks `platform` and `queues` for a cluster that is not Google's: what is Google's is left out of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tests.cluster.ground import CannotUse

# The releases, with the namespaces that they are in.
CONTROLLERS = tuple(
    address
    for name in ("jobset", "kueue")
    for address in (
        f"helm_release.{name}",
        f"kubernetes_namespace_v1.{name}-system",
        f"kubernetes_manifest.{name}-system-ingress",
    )
)

# What a data source of Google's would say: ids and numbers.
_OF_GOOGLE = re.compile(r"\$\{data\.google_[^}]+\}")
_NUMBER = "123456789012345678901"

Stack = dict[str, Any]


def for_a_lab(stack: Mapping[str, Any], address: str, *, without: Collection[str] = ()) -> Stack:
    """A synthesized stack with its state in its folder, whose providers reach the cluster at `address`.

    Without Google's resources, and `without` others, by their addresses: nothing depends on them then. What Google's
    data sources would say is a number.
    """
    out: Stack = json.loads(_OF_GOOGLE.sub(_NUMBER, json.dumps(stack)))
    out["provider"] = {"kubernetes": [{"host": address}], "helm": [{"kubernetes": {"host": address}}]}
    out["terraform"]["backend"] = {"local": {}}
    out["terraform"]["required_providers"].pop("google", None)
    out.pop("data", None)
    out.pop("output", None)
    kept: dict[str, dict[str, Any]] = {}
    for type_, by_id in out.get("resource", {}).items():
        for id_, resource in by_id.items():
            if not type_.startswith("google_") and f"{type_}.{id_}" not in without:
                kept.setdefault(type_, {})[id_] = resource
    there = {f"{type_}.{id_}" for type_, by_id in kept.items() for id_ in by_id}
    for by_id in kept.values():
        for resource in by_id.values():
            if "depends_on" in resource:
                resource["depends_on"] = [address for address in resource["depends_on"] if address in there]
    out["resource"] = kept
    return out


def releases_of_local_charts(stack: Mapping[str, Any]) -> list[str]:
    """Gate and drains, whose programs Helm runs as Jobs: they need a node."""
    releases = stack.get("resource", {}).get("helm_release", {})
    return [f"helm_release.{id_}" for id_, release in releases.items() if str(release["chart"]).startswith("./")]


class Terraform:
    """One stack in a folder of its own, by Terraform with the real providers. Raises CannotUse without them."""

    def __init__(self, folder: Path, stack: Stack, *, assets: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        if assets.is_dir():
            shutil.copytree(assets, folder / "assets")
        self.write(stack)
        init = self._run("init", "-input=false")
        if init.returncode:
            raise CannotUse(f"the real Terraform providers cannot be had here: {init.stderr.strip()}")

    def write(self, stack: Stack) -> None:
        (self.folder / "cdk.tf.json").write_text(json.dumps(stack, indent=1), encoding="utf-8")

    def apply(self) -> None:
        self._must("apply", "-auto-approve", "-input=false")

    def destroy(self) -> None:
        self._must("destroy", "-auto-approve", "-input=false")

    def changes(self) -> str:
        """What a plan would change, in Terraform's words; "" for nothing."""
        done = self._run("plan", "-input=false", "-detailed-exitcode")
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def _must(self, *arguments: str) -> None:
        done = self._run(*arguments)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [os.environ.get("TERRAFORM_BINARY_NAME", "terraform"), *arguments, "-no-color"],
            cwd=self.folder,
            env={**os.environ, "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"},
            capture_output=True,
            text=True,
        )
