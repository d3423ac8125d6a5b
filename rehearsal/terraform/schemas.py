"""The model of a Terraform schema: what one resource, data source or provider configuration may contain.

Types are written as Terraform writes them in JSON: "string", "number", "bool", "dynamic", ["list", T], ["set", T],
["map", T], ["object", {name: T}] (source: `cty`'s JSON type serialization).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any

from rehearsal.terraform.protocol_messages import MESSAGES

CtyType = Any  # "string", ["list", ...], ...: JSON, so no narrower type describes it

_NESTING = {"single": 1, "list": 2, "set": 3, "map": 4}


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """One attribute. `nested` is set for the attributes that protocol 6 calls nested (helm's `set`, `metadata`,
    ...).
    """

    type_: CtyType
    required: bool = False
    optional: bool = False
    computed: bool = False
    nested: Nested | None = None


@dataclass(frozen=True, kw_only=True)
class Nested:
    """The inside of a nested attribute; `nesting` is single, list, set or map."""

    nesting: str
    attributes: dict[str, Attribute]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A resource as a whole, or one block in it."""

    attributes: dict[str, Attribute] = field(default_factory=dict)
    blocks: dict[str, NestedBlock] = field(default_factory=dict)

    @property
    def type_(self) -> CtyType:
        """The type of a value of this block: always an object with every attribute and block."""
        fields = {name: attribute.type_ for name, attribute in self.attributes.items()}
        fields.update({name: nested.type_ for name, nested in self.blocks.items()})
        return ["object", fields]


@dataclass(frozen=True, kw_only=True)
class NestedBlock:
    """A block inside a block. `single_item` says that at most one may be written (the bindings say no more about
    limits).
    """

    block: Block
    nesting: str
    single_item: bool = False

    @property
    def type_(self) -> CtyType:
        inner = self.block.type_
        return inner if self.nesting == "single" else [self.nesting, inner]


def nested_type(nesting: str, attributes: dict[str, Attribute]) -> CtyType:
    """The type of a nested attribute's value."""
    inner = ["object", {name: attribute.type_ for name, attribute in attributes.items()}]
    return inner if nesting == "single" else [nesting, inner]


def to_message(block: Block, *, version: int = 0, sensitive: Collection[str] = ()) -> Any:
    """The schema as the protocol's `Schema` message; `sensitive` are dotted paths of attributes."""
    return MESSAGES["Schema"](version=version, block=_block_message(block, sensitive, ""))


def _block_message(block: Block, sensitive: Collection[str], prefix: str) -> Any:
    return MESSAGES["Block"](
        attributes=[
            _attribute_message(name, attribute, sensitive, prefix) for name, attribute in block.attributes.items()
        ],
        block_types=[
            MESSAGES["NestedBlock"](
                type_name=name,
                block=_block_message(nested.block, sensitive, f"{prefix}{name}."),
                nesting=_NESTING[nested.nesting],
                max_items=1 if nested.single_item and nested.nesting in ("list", "set") else 0,
            )
            for name, nested in block.blocks.items()
        ],
    )


def _attribute_message(name: str, attribute: Attribute, sensitive: Collection[str], prefix: str) -> Any:
    message = MESSAGES["Attribute"](
        name=name,
        required=attribute.required,
        optional=attribute.optional,
        computed=attribute.computed,
        sensitive=prefix + name in sensitive,
    )
    if attribute.nested is None:
        message.type = json.dumps(attribute.type_).encode()
    else:
        inner = [
            _attribute_message(key, value, sensitive, f"{prefix}{name}.")
            for key, value in attribute.nested.attributes.items()
        ]
        message.nested_type.CopyFrom(MESSAGES["Object"](attributes=inner, nesting=_NESTING[attribute.nested.nesting]))
    return message


def to_json(block: Block) -> Any:
    """The schema as JSON, to keep it on disk."""
    return asdict(block)


def from_json(data: Any) -> Block:
    """The inverse of `to_json`; what is false or null may be left out."""
    blocks = {name: value | {"block": from_json(value["block"])} for name, value in data["blocks"].items()}
    return Block(
        attributes=_attributes_from_json(data["attributes"]),
        blocks={name: NestedBlock(**value) for name, value in blocks.items()},
    )


def _attributes_from_json(data: Any) -> dict[str, Attribute]:
    return {
        name: Attribute(**value | {"nested": _nested_from_json(value.get("nested"))}) for name, value in data.items()
    }


def _nested_from_json(data: Any) -> Nested | None:
    return data and Nested(nesting=data["nesting"], attributes=_attributes_from_json(data["attributes"]))
