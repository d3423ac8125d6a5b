"""Values as Terraform sends them."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.terraform import values
from rehearsal.terraform.values import UNKNOWN, Dynamic, Unknown

SCALARS = {
    "string": st.text(),
    "number": st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
}


def typed() -> st.SearchStrategy[tuple[Any, Any]]:
    """A type and a value of it, some null and some unknown."""
    leaves = st.sampled_from(list(SCALARS)).flatmap(lambda name: st.tuples(st.just(name), SCALARS[name]))
    maybe = st.tuples(leaves, st.sampled_from(["value", "value", "null", "unknown"])).map(
        lambda pair: (pair[0][0], {"value": pair[0][1], "null": None, "unknown": UNKNOWN}[pair[1]])
    )
    return st.recursive(maybe, _nested, max_leaves=12)


def _nested(inner: st.SearchStrategy[tuple[Any, Any]]) -> st.SearchStrategy[tuple[Any, Any]]:
    lists = inner.map(lambda pair: (["list", pair[0]], [pair[1], pair[1]]))
    maps = inner.map(lambda pair: (["map", pair[0]], {"k": pair[1]}))
    objects = st.dictionaries(st.text(max_size=3), inner, max_size=3).map(
        lambda fields: (
            ["object", {name: pair[0] for name, pair in fields.items()}],
            {name: pair[1] for name, pair in fields.items()},
        )
    )
    dynamic = inner.map(lambda pair: ("dynamic", pair[1] if pair[1] in (None, UNKNOWN) else Dynamic(pair[0], pair[1])))
    return lists | maps | objects | dynamic


@given(typed())
def test_a_value_survives_the_way_to_terraform_and_back(pair: tuple[Any, Any]) -> None:
    type_, value = pair
    assert values.decode(values.encode(value, type_), type_) == value


def test_unknown_is_extension_type_0() -> None:
    assert values.encode(UNKNOWN, "string") == b"\xd4\x00\x00"
    assert values.decode(b"\xd4\x00\x00", "string") == UNKNOWN


def test_a_refined_unknown_goes_back_as_it_came() -> None:
    raw = msgpack.packb(msgpack.ExtType(12, b"\x81\x01\xc2"))
    assert values.decode(raw, "string") == Unknown(12, b"\x81\x01\xc2")
    assert values.encode(values.decode(raw, "string"), "string") == raw


@pytest.mark.parametrize(
    ("number", "sent"), [(0.1, "0.1"), (2.0, "2"), (1e300, repr(int(1e300))), (7, 7), (2**64, str(2**64))]
)
def test_numbers_lose_nothing(number: float, sent: object) -> None:
    assert msgpack.unpackb(values.encode(number, "number")) == sent


def test_a_dynamic_value_is_its_type_and_itself() -> None:
    raw = values.encode({"a": ["x", 1]}, "dynamic")
    assert msgpack.unpackb(raw) == [b'["object", {"a": ["tuple", ["string", "number"]]}]', {"a": ["x", 1]}]


def test_what_is_missing_in_an_object_is_null() -> None:
    assert msgpack.unpackb(values.encode({}, ["object", {"a": "string"}])) == {"a": None}


def test_known_parts() -> None:
    value = {"a": UNKNOWN, "b": [1, {"c": UNKNOWN}]}
    assert not values.is_known(value)
    assert values.known_part(value) == {"a": None, "b": [1, {"c": None}]}
    with pytest.raises(ValueError, match="unknown"):
        values.plain(value)
