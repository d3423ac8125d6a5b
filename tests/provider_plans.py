"""One change, planned by the fake providers and by the real ones on the same state, in a form that can be compared.

Nothing is asked of any API, so what only an API could answer is taken out on both sides alike: data sources give way
to what the state has of them, and resources that the real providers cannot plan alone are left out (`needs_api`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The google provider asks who the token belongs to and, without an answer, retries for five minutes; a proxy that is
# not there fails at once, and the provider goes on.
OFFLINE = {"GOOGLE_OAUTH_ACCESS_TOKEN": "fake", "HTTPS_PROXY": "http://127.0.0.1:1"}
LOCAL_BACKEND = '{"terraform": {"backend": {"local": {}}}}'

MANIFEST, RELEASE = "kubernetes_manifest", "helm_release"

Json = Any


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What happens to one resource, the paths that force its replacement, and each attribute that changes: what it was
    and will be.
    """

    actions: tuple[str, ...]
    forced: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Failed(Exception):
    """Terraform ended with an error, and what it said."""


def needs_api(type_: str, config: Mapping[str, Any]) -> bool:
    """Whether the real provider asks something else than its schema to plan: the API server for the schema of an
    object, a repository for a chart.
    """
    return type_ == MANIFEST or (type_ == RELEASE and not str(config["chart"]).startswith("./"))


def sources_of(state: Json) -> dict[str, Json]:
    """What a state has of data sources, by address."""
    data = [resource for resource in state["resources"] if resource["mode"] == "data"]
    return {f"data.{source['type']}.{source['name']}": source["instances"][0]["attributes"] for source in data}


def missing(config: Json, sources: Mapping[str, Json]) -> set[str]:
    """The data sources of a stack that `sources` does not have."""
    named = {f"data.{type_}.{name}" for type_, by_name in config.get("data", {}).items() for name in by_name}
    return named - sources.keys()


def alone(config: Json, state: Json, sources: Mapping[str, Json]) -> tuple[Json, Json]:
    """A stack and its state without what needs an API, and without the protection that would end a plan."""
    named = {
        f"{type_}.{name}": (type_, name, resource)
        for type_, by_name in config["resource"].items()
        for name, resource in by_name.items()
    }
    left_out = {address for address, (type_, _, resource) in named.items() if needs_api(type_, resource)}
    resources: dict[str, dict[str, Json]] = {}
    for address, (type_, name, resource) in named.items():
        if address not in left_out:
            resources.setdefault(type_, {})[name] = _plain(resource, left_out)
    text = json.dumps(
        {
            "terraform": {"required_providers": config["terraform"]["required_providers"]},
            "provider": config["provider"],
            "resource": resources,
        }
    )
    for address in sources:
        text = text.replace(f"{address}.", f"local.{_local(address)}.")
    values = {_local(address): _escaped(value) for address, value in sources.items()}
    kept = [
        resource for resource in state["resources"] if resource["mode"] == "managed" and not _state_needs_api(resource)
    ]
    described = json.loads(text) | ({"locals": values} if values else {})
    return described, state | {"resources": kept, "outputs": {}}


def _local(address: str) -> str:
    return address.replace(".", "_")


def _state_needs_api(resource: Json) -> bool:
    return any(needs_api(resource["type"], instance["attributes"]) for instance in resource["instances"])


def _plain(resource: Json, left_out: set[str]) -> Json:
    out = {key: value for key, value in resource.items() if key != "//"}
    if "depends_on" in out:
        out["depends_on"] = [address for address in out["depends_on"] if address not in left_out]
    if "lifecycle" in out:
        out["lifecycle"] = {key: value for key, value in out["lifecycle"].items() if key != "prevent_destroy"}
    return out


def _escaped(value: Json) -> Json:
    """Values as literals: Terraform would take `${` for the start of an expression."""
    if isinstance(value, dict):
        return {key: _escaped(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_escaped(inner) for inner in value]
    return value.replace("${", "$${").replace("%{", "%%{") if isinstance(value, str) else value


@dataclass
class Planner:
    """Terraform with one set of providers: those that `environment` leads to. `folder` is its own; `offline` is more of
    the environment where nothing is installed.
    """

    folder: Path
    environment: Mapping[str, str]
    offline: Mapping[str, str] = field(default_factory=dict)
    ready: set[str] = field(default_factory=set)

    def initialise(self, stack: str, config: Json) -> None:
        """Install the providers of a stack. Raises Failed."""
        if stack not in self.ready:
            folder = self.folder / stack
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cdk.tf.json").write_text(json.dumps(config), encoding="utf-8")
            (folder / "backend_override.tf.json").write_text(LOCAL_BACKEND, encoding="utf-8")
            self.terraform(stack, "init", "-input=false", "-no-color")
            self.ready.add(stack)

    def plan(self, stack: str, config: Json, state: Json, assets: Path) -> dict[str, Planned]:
        """By address, all that is not left as it is. Raises Failed."""
        shown = self._shown(stack, config, state, assets)
        planned = {change["address"]: _planned(change["change"]) for change in shown.get("resource_changes", [])}
        return {address: change for address, change in planned.items() if change.actions != ("no-op",)}

    def sources(self, stack: str, config: Json, state: Json, assets: Path) -> dict[str, Json]:
        """What a plan reads of the data sources, by address. Raises Failed."""
        without_backend = config | {"terraform": {"required_providers": config["terraform"]["required_providers"]}}
        read = self._shown(stack, without_backend, state, assets)["prior_state"]["values"]["root_module"]["resources"]
        return {resource["address"]: resource["values"] for resource in read if resource["mode"] == "data"}

    def _shown(self, stack: str, config: Json, state: Json, assets: Path) -> Json:
        self.initialise(stack, config)
        folder = self.folder / stack
        if assets.is_dir():
            shutil.copytree(assets, folder / assets.name, dirs_exist_ok=True)
        (folder / "cdk.tf.json").write_text(json.dumps(config), encoding="utf-8")
        (folder / "terraform.tfstate").write_text(json.dumps(state), encoding="utf-8")
        self.terraform(stack, "plan", "-refresh=false", "-input=false", "-no-color", "-lock=false", "-out=planned")
        return json.loads(self.terraform(stack, "show", "-json", "planned"))

    def terraform(self, stack: str, *arguments: str) -> str:
        done = subprocess.run(
            [os.environ.get("TERRAFORM_BINARY_NAME", "terraform"), *arguments],
            cwd=self.folder / stack,
            env={
                **self.environment,
                **({} if arguments[0] == "init" else self.offline),
                "TF_IN_AUTOMATION": "1",
                "CHECKPOINT_DISABLE": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Failed(done.stdout + done.stderr)
        return done.stdout


def _planned(change: Json) -> Planned:
    forced = tuple(sorted(_dotted(path) for path in change.get("replace_paths", [])))
    before, after, unknown = (change.get(key) for key in ("before", "after", "after_unknown"))
    changed = tuple(sorted(_differences(before, after, unknown, ())))
    return Planned(actions=tuple(change["actions"]), forced=forced, changed=changed)


def _differences(before: Json, after: Json, unknown: Json, path: tuple[Any, ...]) -> list[str]:
    if unknown is True:
        return [f"{_dotted(path)}: known after apply"]
    if isinstance(after, dict) or (isinstance(before, dict) and after is None):
        old, new, open_ = (side if isinstance(side, dict) else {} for side in (before, after, unknown))
        keys = {*old, *new, *open_}
        return [
            difference
            for key in sorted(keys)
            for difference in _differences(old.get(key), new.get(key), open_.get(key), (*path, key))
        ]
    if isinstance(after, list) and any(isinstance(item, dict) for item in after):
        old = before if isinstance(before, list) else []
        open_ = unknown if isinstance(unknown, list) else []
        return [
            difference
            for at in range(max(len(old), len(after)))
            for difference in _differences(_at(old, at), _at(after, at), _at(open_, at), (*path, at))
        ]
    if _said(before) == _said(after):
        return []
    return [f"{_dotted(path)}: {json.dumps(_said(before))} -> {json.dumps(_said(after))}"]


def _at(items: Json, at: int) -> Json:
    return items[at] if at < len(items) else None


def _said(value: Json) -> Json:
    """The SDK writes nothing in several ways, and in a block that changes in others than before."""
    return None if value in ("", 0, False, [], {}) else value


def _dotted(path: Any) -> str:
    return ".".join(str(step) for step in path)
