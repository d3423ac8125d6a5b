"""The changes of tests/changes: an environment before and after, and what a deploy must do to each resource."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

import environment
from environment import Environment
from tests.synthesis import HERE, synthesize
from tests.yaml_files import documents
from vocabulary.sources import CHARTS

CHANGES = HERE / "changes"
NAMES = sorted(path.stem for path in CHANGES.glob("*.yaml"))

ACTIONS = ("create", "update", "replace", "destroy")

_ALWAYS = {"PROJECT_ID": "my-project", "PROJECT_NUMBER": "123456789012"}


@dataclass(frozen=True, kw_only=True)
class Described:
    """Settings, a fleet.yaml if there is one, and versions and digests of charts where they are not this code's."""

    settings: Mapping[str, str] = field(default_factory=dict)
    fleet: Mapping[str, Any] | None = None
    charts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Equal for two that describe the same."""
        return json.dumps([dict(self.settings), self.fleet, dict(self.charts)], sort_keys=True)

    @property
    def vars_env(self) -> str:
        return "".join(f"{key}={value}\n" for key, value in {**_ALWAYS, **self.settings}.items())

    def environment(self) -> Environment:
        with tempfile.TemporaryDirectory() as folder:
            vars_env, fleet = Path(folder) / "vars.env", Path(folder) / "fleet.yaml"
            vars_env.write_text(self.vars_env, encoding="utf-8")
            if self.fleet is not None:
                fleet.write_text(yaml.safe_dump(dict(self.fleet), sort_keys=False), encoding="utf-8")
            return environment.load(vars_env, {}, fleet)

    def synthesize(self, folder: Path) -> Path:
        """Stacks and manifests in `folder`."""
        others = {name: replace(CHARTS[name], **chart) for name, chart in self.charts.items()}
        with mock.patch.dict(CHARTS, others):
            return synthesize(self.environment(), folder)


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Where the deploy stops, and with which words; `plan` is then what is done before it."""

    stack: str
    words: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """`plan` has, by stack and address, one of ACTIONS; to every resource that it does not name nothing is done."""

    name: str
    before: Described
    after: Described
    plan: Mapping[str, Mapping[str, str]]
    refused: Refused | None = None

    def addresses(self, type_: str, *actions: str) -> set[str]:
        """The logical ids of the resources of a type to which one of these happens."""
        return {
            address.removeprefix(f"{type_}.")
            for of_stack in self.plan.values()
            for address, action in of_stack.items()
            if address.startswith(f"{type_}.") and action in actions
        }

    @property
    def touched_pools(self) -> set[str]:
        """Node pools, by their own name, that do not stay as they are."""
        pools = self.addresses("google_container_node_pool", "update", "replace", "destroy")
        return {pool.removesuffix("-pool") for pool in pools}

    @property
    def stopped_groups(self) -> set[str]:
        """Pool groups of which a slice, and so perhaps a job's, is deleted."""
        pools = self.addresses("google_container_node_pool", "replace", "destroy")
        return {re.sub(r"-\d+$", "", pool) for pool in pools}

    @property
    def stopped_teams(self) -> set[str]:
        """Teams that are drained."""
        drains = self.addresses("helm_release", "replace", "destroy")
        return {match[1] for drain in drains if (match := re.fullmatch(r"(?:evict|drain)-(.+)_release_\w+", drain))}


@cache
def change(name: str) -> Change:
    """The change in tests/changes/NAME.yaml. `after` gives only what differs from `before`, key by key."""
    (read,) = documents(CHANGES / f"{name}.yaml")
    unknown = read.keys() - {"before", "after", "plan", "refused"}
    assert not unknown, f"{name}: {unknown}"
    before, after = read.get("before") or {}, read["after"]
    return Change(
        name=name,
        before=_described(before),
        after=_described({key: _over(before.get(key), after.get(key)) for key in {*before, *after}}),
        plan=read.get("plan") or {},
        refused=Refused(**read["refused"]) if "refused" in read else None,
    )


def _described(read: Mapping[str, Any]) -> Described:
    settings = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in (read.get("settings") or {}).items()
    }
    return Described(settings=settings, fleet=read.get("fleet"), charts=read.get("charts") or {})


def _over(before: Any, after: Any) -> Any:
    """`before` with the keys of `after`, at every depth; a key whose value is `absent` is left out."""
    if after is None:
        return before
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return after
    merged = {**before, **{key: _over(before.get(key), value) for key, value in after.items()}}
    return {key: value for key, value in merged.items() if value != "absent"}
