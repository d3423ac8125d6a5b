"""The typed resources of the kubernetes provider: Terraform's attributes to a Kubernetes object and back, by the
schema.
"""

from __future__ import annotations

import re
from typing import Any

from rehearsal.cloud import Attributes
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.controllers import holders
from rehearsal.kubernetes.manifest_resource import Manifest
from rehearsal.kubernetes.objects import Object
from rehearsal.kubernetes.provider_access import cluster_api
from rehearsal.kubernetes.resources import BUILT_IN, Resource
from rehearsal.kubernetes.status import Status
from rehearsal.terraform import planning
from rehearsal.terraform.resource_type import Client, Refusal, ResourceType
from rehearsal.terraform.schemas import Block, NestedBlock
from rehearsal.terraform.values import Unknown
from vocabulary.resource_types import all_types

# What the provider keeps for itself.
_NOT_IN_THE_OBJECT = ("id", "timeouts", "default_secret_name", "wait_for_default_service_account")
_SERVERS = ("generation", "resource_version", "uid")

# Terraform names a repeated block in the singular. https://kubernetes.io/docs/reference/kubernetes-api/
_PLURALS = {
    "rule": "rules",
    "subject": "subjects",
    "image_pull_secret": "imagePullSecrets",
    "secret": "secrets",
}


class Typed:
    """One `kubernetes_<kind>_v1` resource type. Every one that vocabulary/resource_types describes is there."""

    def __init__(self, type_: str) -> None:
        self.type_ = type_
        self.kind = _camel(f"_{type_.removeprefix('kubernetes_').removesuffix('_v1')}")
        self.api_version = next(resource.api_version for resource in BUILT_IN if resource.kind == self.kind)

    def forces(self, prior: Attributes, planned: Attributes) -> list[planning.Path]:
        return []

    def plan(self, client: Client, block: Block, prior: Attributes | None, planned: Attributes) -> Attributes:
        """The provider asks nobody; a namespace that is not given is "default"."""
        out = dict(planned)
        inside = block.blocks["metadata"].block.attributes if "metadata" in block.blocks else {}
        if "namespace" in inside:
            out["metadata"] = [_in_default(item) for item in planned["metadata"]]
        return out

    def read(self, client: Client, block: Block, state: Attributes) -> Attributes | None:
        api = cluster_api(client, client.settings)
        try:
            live = api.get(self._resource(api), *_place(state))
        except Status:
            return None
        return state | {"id": _id(state)} | _to_attributes(live, block, state)

    def create(self, client: Client, block: Block, planned: Attributes) -> Attributes:
        api = cluster_api(client, client.settings)
        try:
            made = api.create(self._object(planned, block))
        except Status as status:
            raise Refusal(status.message) from status
        return self._settled(made, block, planned)

    def update(self, client: Client, block: Block, prior: Attributes, planned: Attributes) -> Attributes:
        api = cluster_api(client, client.settings)
        try:
            made = api.update(self._object(planned, block), owner=True)
        except Status as status:
            raise Refusal(f"Failed to update {self.kind}: {status.message}") from status
        return self._settled(made, block, planned)

    def delete(self, client: Client, block: Block, prior: Attributes) -> None:
        api = cluster_api(client, client.settings)
        try:
            left = api.delete(self._resource(api), *_place(prior))
        except Status:
            return
        if left is not None:
            raise Refusal(
                f"context deadline exceeded: {self.kind} {_id(prior)} is terminating: {'; '.join(holders(api, left))}"
            )

    def find(self, client: Client, id_: str) -> Attributes:
        """ "namespace/name", or "name" for what is in no namespace."""
        namespace, _, name = id_.rpartition("/")
        return {"id": id_, "metadata": [{"name": name, "namespace": namespace or None}]}

    def _resource(self, api: Api) -> Resource:
        return api.resource(self.api_version, self.kind)

    def _object(self, values: Attributes, block: Block) -> Object:
        body = _to_object(block, values, skip=_NOT_IN_THE_OBJECT)
        body["metadata"] = {
            key: value for key, value in body["metadata"].items() if key not in ("uid", "resourceVersion")
        }
        return {"apiVersion": self.api_version, "kind": self.kind, **body}

    @staticmethod
    def _settled(made: Object, block: Block, planned: Attributes) -> Attributes:
        metadata = made["metadata"]
        servers = {
            "name": metadata["name"],
            "uid": metadata["uid"],
            "generation": metadata["generation"],
            "resource_version": metadata["resourceVersion"],
        }
        decided = {"id": _id({"metadata": [metadata]}), "metadata": [servers]}
        settled = planning.settle(block, planning.overlay(planned, decided))
        # Of an update the provider plans the old ones, and keeps what it reads afterwards.
        kept = {name: servers[name] for name in _SERVERS if name in settled["metadata"][0]}
        return settled | {"metadata": [settled["metadata"][0] | kept]}


def _in_default(metadata: Attributes) -> Attributes:
    given = metadata.get("namespace")
    return metadata if given is not None and not isinstance(given, Unknown) else metadata | {"namespace": "default"}


def _place(values: Attributes) -> tuple[str, str]:
    metadata = values["metadata"][0]
    return str(metadata.get("namespace") or ""), str(metadata["name"])


def _id(values: Attributes) -> str:
    return "/".join(part for part in _place(values) if part)


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match.group(1).upper(), name)


def _key(name: str, nested: NestedBlock | None) -> str:
    return _PLURALS.get(name, _camel(name)) if nested is not None and not nested.single_item else _camel(name)


def _to_object(block: Block, values: Attributes, *, skip: tuple[str, ...] = ()) -> Object:
    out: Object = {}
    for name in block.attributes:
        value = values.get(name)
        if name not in skip and name not in _SERVERS and value is not None and not isinstance(value, Unknown):
            out[_camel(name)] = value
    for name, nested in block.blocks.items():
        items = values.get(name)
        if name in skip or not items:
            continue
        parts = [_to_object(nested.block, item) for item in (items if isinstance(items, list) else [items])]
        out[_key(name, nested)] = parts[0] if nested.single_item else parts
    return out


def _to_attributes(body: Object, block: Block, state: Attributes) -> Attributes:
    """The attributes that the object decides. What it does not have stays as Terraform has it if that is nothing."""
    out: Attributes = {}
    for name in block.attributes:
        key = _camel(name)
        if name in _NOT_IN_THE_OBJECT:
            continue
        if key in body:
            out[name] = body[key]
        elif state.get(name) not in (None, "", 0, False, [], {}):
            out[name] = None
    for name, nested in block.blocks.items():
        if name not in _NOT_IN_THE_OBJECT:
            out[name] = _blocks(body.get(_key(name, nested)), nested, state.get(name))
    return out


def _blocks(there: Any, nested: NestedBlock, state: Any) -> Any:
    before = state if isinstance(state, list) else []
    items = there if isinstance(there, list) else [] if there is None else [there]
    if not items and len(before) == 1 and not any(value for value in before[0].values()):
        return before  # an empty block says nothing, and the object does not hold it
    out = []
    for at, item in enumerate(items):
        old = before[at] if at < len(before) else {}
        filled: Attributes = dict.fromkeys(nested.block.attributes)
        out.append(filled | old | _to_attributes(item, nested.block, old))
    return out


RESOURCE_TYPES: tuple[ResourceType, ...] = (
    Manifest(),
    *(Typed(type_) for type_ in all_types() if type_.startswith("kubernetes_") and type_ != Manifest.type_),
)
