"""Values as Terraform sends them: MessagePack with cty's conventions, to and from plain Python.

string, number, bool -> str, int or float, bool; list, set, tuple -> list; map, object -> dict; null -> None;
unknown -> `Unknown`; a value whose type the schema leaves open -> `Dynamic`. Source: the `msgpack` package of
zclconf/go-cty.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgpack

from rehearsal.terraform.schemas import CtyType

Value = Any


@dataclass(frozen=True)
class Unknown:
    """A value known after apply. `code` 12 carries refinements ("not null", a prefix), which go back as they came."""

    code: int = 0
    data: bytes = b"\0"


@dataclass(frozen=True)
class Dynamic:
    """A value together with the type that Terraform gave it."""

    type_: CtyType
    value: Value


UNKNOWN = Unknown()


def decode(raw: bytes, type_: CtyType) -> Value:
    """The value in `raw`, which is of type `type_`."""
    return _typed(msgpack.unpackb(raw, raw=False, ext_hook=Unknown, strict_map_key=False), type_)


def encode(value: Value, type_: CtyType) -> bytes:
    """The inverse of `decode`. Attributes missing from an object are sent as null."""
    packed = msgpack.packb(_packable(value, type_))
    assert isinstance(packed, bytes)
    return packed


def _typed(value: Value, type_: CtyType) -> Value:
    if value is None or isinstance(value, Unknown):
        return value
    if type_ == "dynamic":
        inner = json.loads(value[0])
        return Dynamic(inner, _typed(value[1], inner))
    if type_ == "number" and isinstance(value, str):
        return float(value) if set(value) & set(".eE") else int(value)
    return _inside(value, type_, _typed)


def _packable(value: Value, type_: CtyType) -> Value:
    if value is None:
        return None
    if isinstance(value, Unknown):
        return msgpack.ExtType(value.code, value.data)
    if type_ == "dynamic":
        dynamic = value if isinstance(value, Dynamic) else Dynamic(type_of(value), value)
        return [json.dumps(dynamic.type_).encode(), _packable(dynamic.value, dynamic.type_)]
    if type_ == "number" and not isinstance(value, bool):
        return _number(value)
    return _inside(value, type_, _packable)


def _number(value: float) -> int | str:
    # Terraform reads "0.1" with 512 bits and would find the nearest double of it to be another number: fractions
    # travel as text.
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    return repr(int(value)) if float(value).is_integer() else repr(value)


def _inside(value: Value, type_: CtyType, convert: Callable[[Value, CtyType], Value]) -> Value:
    """`value` with `convert` done to everything in it."""
    if isinstance(type_, str):
        return value
    kind, inner = type_
    if kind == "object":
        return {name: convert(value.get(name), inner_type) for name, inner_type in inner.items()}
    if kind == "map":
        return {name: convert(item, inner) for name, item in value.items()}
    if kind == "tuple":
        return [convert(item, item_type) for item, item_type in zip(value, inner, strict=True)]
    return [convert(item, inner) for item in value]


def type_of(value: Value) -> CtyType:
    """The type that Terraform gives to a value written in JSON."""
    if isinstance(value, Dynamic):
        return value.type_
    if isinstance(value, dict):
        return ["object", {name: type_of(item) for name, item in value.items()}]
    if isinstance(value, list):
        return ["tuple", [type_of(item) for item in value]]
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "dynamic"


def plain(value: Value) -> Value:
    """`value` without the types kept by `Dynamic`; raises ValueError where something is unknown."""
    if isinstance(value, Unknown):
        raise ValueError("unknown")
    if isinstance(value, Dynamic):
        return plain(value.value)
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def is_known(value: Value) -> bool:
    """Whether nothing in `value` is unknown."""
    if isinstance(value, Unknown):
        return False
    if isinstance(value, Dynamic):
        return is_known(value.value)
    if isinstance(value, dict):
        return all(is_known(item) for item in value.values())
    return all(is_known(item) for item in value) if isinstance(value, list) else True


def known_part(value: Value) -> Value:
    """`value` with null in place of everything unknown."""
    if isinstance(value, Unknown):
        return None
    if isinstance(value, dict):
        return {name: known_part(item) for name, item in value.items()}
    return [known_part(item) for item in value] if isinstance(value, list) else value


def empty(type_: CtyType) -> Value:
    """A known value that says nothing, for what the server decides and no rule plays."""
    if isinstance(type_, str):
        return {"string": "", "number": 0, "bool": False, "dynamic": None}[type_]
    if type_[0] == "object":
        return {name: empty(inner) for name, inner in type_[1].items()}
    return {} if type_[0] == "map" else []


def block_at(values: Value, path: str) -> dict[str, Value]:
    """The block at a dotted path of blocks of which there is at most one each; empty where none is written."""
    for name in path.split("."):
        inner = values.get(name) if isinstance(values, dict) else None
        values = inner[0] if isinstance(inner, list) and inner else inner
    return values if isinstance(values, dict) else {}


def value_at(values: Value, path: str) -> Value:
    """The attribute at a dotted path through such blocks, None where it is not written."""
    blocks, _, name = path.rpartition(".")
    return (block_at(values, blocks) if blocks else values).get(name)
