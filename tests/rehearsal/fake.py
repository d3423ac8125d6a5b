"""A small Terraform in this process: it applies the product's own stacks through fake providers, so that a rule's test
takes milliseconds.

It evaluates references and proposes what Terraform would propose.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import pickle
import re
import shutil
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rehearsal import http_server
from rehearsal.cloud import Cloud
from rehearsal.google.project import create_project
from rehearsal.resource_types import DATA_SOURCES, RESOURCE_TYPES
from rehearsal.serve import answers, provider, schemas_of
from rehearsal.terraform import planning, values
from rehearsal.terraform.fake_provider import Provider, Schemas
from rehearsal.terraform.resource_type import Client, Place, ResourceType
from rehearsal.terraform.schemas import Block
from rehearsal.terraform.values import Value
from tests.rehearsal.proposals import complete, proposed

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / ".venv" / "cache" / "rehearsal"

_REFERENCE = re.compile(r"\$\{([^}]+)\}")


def provider_of(type_: str) -> str:
    """The provider that has a resource type or a data source. Raises StopIteration for one that none has."""
    return next(name for name, types in RESOURCE_TYPES.items() if type_ in types or type_ in DATA_SOURCES.get(name, {}))


@functools.cache
def _schemas(provider: str) -> Schemas:
    return schemas_of(provider, CACHE)


@dataclass
class Resource:
    """A resource of a stack: where it is written, its configuration, and its state once applied."""

    address: str  # "google_compute_network.network"
    config: dict[str, Any]
    state: dict[str, Value] | None = None
    google: dict[str, Any] = field(default_factory=dict)  # the settings of the google provider of its stack

    @property
    def type_(self) -> str:
        return self.address.split(".")[0]


@dataclass
class FakeCloud:
    """A cloud in `folder`, the fake providers in front of it, and what has been applied."""

    folder: Path
    project: str = "my-project"
    number: str = "123456789012"
    services: tuple[str, ...] = ()
    resources: dict[str, Resource] = field(default_factory=dict)
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    account: str = ""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cloud = Cloud(self.folder / "cloud.db")
        if not self.cloud.find():
            create_project(self.cloud, self.project, number=self.number, services=list(self.services))
        self._web: ThreadingHTTPServer | None = None
        self._place = Place(folder=self.folder)
        self.providers: dict[str, Provider] = {}
        self.warnings: list[str] = []

    @property
    def place(self) -> Place:
        """With the address of a server that runs from now on; most tests do without."""
        if self._web is None:
            self._web, address = http_server.start(answers(self.cloud))
            self._place = Place(folder=self.folder, address=address)
        return self._place

    def close(self) -> None:
        if self._web is not None:
            self._web.shutdown()
            self._web.server_close()
        self.cloud.close()

    def copy(self, folder: Path) -> FakeCloud:
        """The same world in another folder."""
        shutil.copytree(self.folder, folder, symlinks=True)
        # Ten times as fast as copy.deepcopy.
        resources, sources, settings = pickle.loads(pickle.dumps((self.resources, self.sources, self.settings)))
        return FakeCloud(folder=folder, resources=resources, sources=sources, settings=settings)

    def act_as(self, account: str) -> None:
        """From now on every provider acts as that service account."""
        self.account = account

    def provider(self, type_: str) -> Provider:
        name = type_ if type_ in RESOURCE_TYPES else provider_of(type_)
        if name not in self.providers:
            self.providers[name] = provider(name, _schemas(name), cloud=self.cloud, place=self._place)
        return self.providers[name]

    def deploy(self, stack: dict[str, Any]) -> None:
        """Apply a stack's JSON, in the order of its references; what is there already is refreshed, and updated or
        replaced. Raises Refusal.
        """
        added = [
            Resource(address=f"{type_}.{name}", config=config)
            for type_, named in stack.get("resource", {}).items()
            for name, config in named.items()
        ]
        sources = {
            f"data.{type_}.{name}": config
            for type_, named in stack.get("data", {}).items()
            for name, config in named.items()
        }
        self._configure(stack, {"google"})
        for address, config in sources.items():
            self.sources[address] = self.read_source(address.split(".")[1], **config)
        self._configure(stack, {"kubernetes", "helm"})
        waiting = added
        while waiting:
            ready = [item for item in waiting if not _needs(item) & {other.address for other in waiting}]
            assert ready, "the references of this stack form a circle"
            for item in ready:
                item.google = self.settings["google"]
                item.state = self._refreshed(item.address)
                self.resources[item.address] = item
                self.apply(item, ignoring=True)
            waiting = [item for item in waiting if item not in ready]

    def _refreshed(self, address: str) -> dict[str, Value] | None:
        """The state as a refresh leaves it: None when there is no such thing, or not any more."""
        item = self.resources.get(address)
        if item is None or item.state is None or item.type_ == "terraform_data":
            return None
        state = self.read(address)
        block = self.provider(item.type_).schemas.resources[item.type_]
        return item.state if state is not None and planning.same(block, state, item.state) else state

    def _configure(self, stack: dict[str, Any], names: set[str]) -> None:
        for name, configs in stack.get("provider", {}).items():
            if name in names:
                config = configs[0] if isinstance(configs, list) else configs
                block = self.provider(name).schemas.provider
                self.settings[name] = complete(block, self._evaluate(config))

    def read_source(self, type_: str, **config: Any) -> dict[str, Any]:
        provider = self.provider(type_)
        block = provider.schemas.sources[type_]
        value = provider.sources[type_].read(self._client("google"), complete(block, config))
        return dict(values.decode(values.encode(value, block.type_), block.type_))

    def _client(self, type_: str) -> Client:
        name = type_ if type_ == "google" else provider_of(type_)
        settings = {"project": self.project, "region": "us-east5", **self.settings.get("google", {})}
        if not name.startswith("google"):
            settings = self.settings[name]
        place = self.place if name == "helm" else self._place
        return Client(cloud=self.cloud, settings=settings, account=self.account, place=place, warn=self.warnings.append)

    def _parts(self, item: Resource) -> tuple[Client, ResourceType, Block, Provider]:
        provider = self.provider(item.type_)
        client = self._client(item.type_)
        if item.google and item.type_.startswith("google_"):
            client = dataclasses.replace(client, settings=item.google)
        return client, provider.resource_types[item.type_], provider.schemas.resources[item.type_], provider

    def apply(self, item: Resource, *, ignoring: bool = False) -> dict[str, Value]:
        """Create the resource, or update or replace it; the new state. What its lifecycle ignores counts if not
        `ignoring`.
        """
        if item.type_ == "terraform_data":
            item.state = dict(item.config)
            return item.state
        client, kind, block, provider = self._parts(item)
        config = complete(block, self._evaluate(_without_meta(item.config)))
        config = _kept(item.config, config, item.state) if ignoring else config
        planned, replaced = provider.plan(client, kind, block, item.state, proposed(block, item.state, config), config)
        if item.state is not None and replaced:
            self.destroy(item)
            return self.apply(item)
        if item.state is None:
            state = provider.create(client, kind, block, planned)
        elif planned is item.state:
            return item.state
        else:
            state = provider.update(client, kind, block, item.state, planned)
        item.state = values.decode(values.encode(state, block.type_), block.type_)
        return item.state

    def plan(self, address: str, **changes: Any) -> tuple[dict[str, Value], list[planning.Path]]:
        """Refresh, and plan with `changes` of the configuration: the planned value and what forces replacement.

        What the lifecycle ignores is ignored where nothing is to change.
        """
        item = self.resources[address]
        client, kind, block, provider = self._parts(item)
        assert item.state is not None
        prior = self.read(address)
        if prior is not None and planning.same(block, prior, item.state):
            prior = item.state
        config = complete(block, self._evaluate(_without_meta(_changed(item.config, changes))))
        config = config if changes else _kept(item.config, config, prior)
        return provider.plan(client, kind, block, prior, proposed(block, prior, config), config)

    def unchanged(self, address: str) -> bool:
        """Whether a refresh finds no drift but in what is ignored, and a plan nothing to do."""
        item, state = self.resources[address], self.read(address)
        return _kept(item.config, state, item.state) == item.state and self.plan(address)[0] == state

    def change(self, address: str, **changes: Any) -> dict[str, Value]:
        """Edit the configuration of an applied resource and apply it."""
        item = self.resources[address]
        item.config = _changed(item.config, changes)
        return self.apply(item)

    def make(self, address: str, like: str = "", **changes: Any) -> Resource:
        """Create one more resource: with `changes`, and otherwise like one that is there."""
        base = self.resources[like].config if like else {}
        item = Resource(address=address, config=_changed(base, changes))
        self.apply(item)
        self.resources[address] = item
        return item

    def again(self, address: str, **changes: Any) -> Resource:
        """Delete the resource outside of Terraform and create it again, with `changes`."""
        item = self.resources[address]
        client, kind, _, _ = self._parts(item)
        name = kind.identity(client, item.state)  # type: ignore[attr-defined]
        assert self.cloud.delete(item.type_, name)
        item.state = None
        item.config = _changed(item.config, changes)
        self.apply(item)
        return item

    def destroy(self, item: Resource | str) -> None:
        """Delete through the fake provider, as the last part of `terraform destroy`."""
        item = self.resources[item] if isinstance(item, str) else item
        if item.type_ != "terraform_data" and item.state is not None:
            client, kind, block, _ = self._parts(item)
            kind.delete(client, block, item.state)
        item.state = None

    def read(self, address: str) -> dict[str, Value] | None:
        """What a refresh finds."""
        item = self.resources[address]
        client, kind, block, _ = self._parts(item)
        assert item.state is not None
        state = kind.read(client, block, item.state)
        return None if state is None else values.decode(values.encode(state, block.type_), block.type_)

    def imported(self, address: str, id_: str) -> dict[str, Value] | None:
        """What `terraform import` would put into the state."""
        item = self.resources[address]
        client, kind, block, provider = self._parts(item)
        state = values.decode(values.encode(provider.imported(client, kind, block, id_), block.type_), block.type_)
        item.state = state
        return self.read(address)

    def _evaluate(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._evaluate(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._evaluate(inner) for inner in value]
        if not isinstance(value, str):
            return value
        whole = _REFERENCE.fullmatch(value)
        if whole is not None:
            return self._reference(whole.group(1))
        return _REFERENCE.sub(lambda match: str(self._reference(match.group(1))), value)

    def _reference(self, text: str) -> Any:
        if function := re.fullmatch(r"basename\((.+)\)", text):
            return str(self._reference(function[1])).rpartition("/")[2]
        parts = text.split(".")
        start = 3 if parts[0] == "data" else 2
        address = ".".join(parts[:start])
        value: Any = self.sources[address] if start == 3 else self.resources[address].state
        for name, index in re.findall(r"([\w-]+)((?:\[\d+\])*)", ".".join(parts[start:])):
            value = value[name]
            for number in re.findall(r"\d+", index):
                value = value[int(number)]
        return value


def _without_meta(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in ("depends_on", "lifecycle", "provider", "//")}


def _kept(config: dict[str, Any], values: Any, prior: Any) -> Any:
    """`values` with those of `prior` under the paths of `ignore_changes`: "node_config[0].labels", metadata["key"]."""
    if prior is None or values is None:
        return values
    out = copy.deepcopy(values)
    for path in config.get("lifecycle", {}).get("ignore_changes", []):
        *way, last = [int(step) if step.isdigit() else step for step in re.findall(r"[\w-]+", path)]
        inside, before = out, prior
        for step in way:
            inside, before = inside[step], before[step]
        if last in before:
            inside[last] = before[last]
        else:
            inside.pop(last, None)
    return out


def _needs(item: Resource) -> set[str]:
    addresses = {".".join(text.split(".")[:2]) for text in _REFERENCE.findall(json.dumps(item.config))}
    return addresses | set(item.config.get("depends_on", []))


def _changed(config: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`changes` with "__" for the way into a block: node_config__machine_type."""
    out = copy.deepcopy(config)
    for path, value in changes.items():
        *way, last = path.split("__")
        inside = out
        for name in way:
            inside = inside.setdefault(name, {})
            inside = inside[0] if isinstance(inside, list) else inside
        if value is None:
            inside.pop(last, None)
        else:
            inside[last] = value
    return out
