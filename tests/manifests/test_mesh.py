"""The mesh of every slice: factors whose product is its devices, and what is said of those that are not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environment.tpu import slice_for, tpu_types
from environment.tpu_catalogue import GENERATIONS
from manifests.mesh import BadMesh, MeshPart, devices, devices_text, factors

KEYS = ("data", "fsdp", "tensor")
PART = MeshPart(keys=KEYS, rest="fsdp")
EVERY_TYPE = [name for generation in GENERATIONS for name in tpu_types(generation)]


def problem(given: dict[str, str], total: int = 16, what: str = "the 16 chips of a v6e-16 slice") -> str:
    with pytest.raises(BadMesh) as bad:
        factors(PART, given, total, what)
    return str(bad.value)


@given(st.sampled_from(EVERY_TYPE), st.dictionaries(st.sampled_from(KEYS), st.integers(1, 64) | st.just(-1)))
def test_the_product_is_the_devices_or_there_is_an_error_that_names_a_key(
    tpu_type: str, numbers: dict[str, int]
) -> None:
    slice_ = slice_for(tpu_type)
    given_ = {key: str(number) for key, number in numbers.items()}
    try:
        made = factors(PART, given_, devices(slice_), devices_text(slice_))
    except BadMesh as bad:
        for line in str(bad).splitlines():
            assert any(key in line for key in numbers)
            assert slice_.tpu_type in line
        fixed = math.prod(number for number in numbers.values() if number > 0)
        complete = "fsdp" in numbers and -1 not in numbers.values()
        several = [*numbers.values()].count(-1) > 1
        assert several or devices(slice_) % fixed or (complete and fixed != devices(slice_))
    else:
        assert math.prod(made.values()) == devices(slice_)
        assert {key: made[key] for key, number in numbers.items() if number > 0} == {
            key: number for key, number in numbers.items() if number > 0
        }


@pytest.mark.parametrize("tpu_type", EVERY_TYPE)
def test_without_a_value_every_device_is_in_what_is_left(tpu_type: str) -> None:
    slice_ = slice_for(tpu_type)
    per_chip = 2 if slice_.generation == "tpu7x" else 1
    assert factors(PART, {}, devices(slice_), "") == {"data": 1, "fsdp": slice_.chips * per_chip, "tensor": 1}


def test_the_devices_of_a_slice_are_counted_as_jax_does() -> None:
    assert devices_text(slice_for("v6e-16")) == "the 16 chips of a v6e-16 slice"
    assert devices_text(slice_for("v4-32")) == "the 16 chips of a v4-32 slice"
    assert devices_text(slice_for("v6e-1")) == "the 1 chip of a v6e-1 slice"
    assert devices_text(slice_for("tpu7x-16")) == "the 16 devices of a tpu7x-16 slice (8 chips, 2 devices a chip)"


def test_minus_one_is_what_is_left_as_in_maxtext() -> None:
    assert factors(PART, {"tensor": "-1", "data": "2"}, 16, "") == {"data": 2, "fsdp": 1, "tensor": 8}
    assert factors(PART, {"fsdp": "-1"}, 16, "") == {"data": 1, "fsdp": 16, "tensor": 1}


def test_what_is_wrong_is_said_with_the_key_its_value_and_what_to_do() -> None:
    slice_ = "the 16 chips of a v6e-16 slice"
    assert problem({"tensor": "3"}) == f"tensor=3 does not divide {slice_}; use 1, 2, 4, 8 or 16"
    assert problem({"tensor": "3", "data": "5"}).count("\n") == 1
    assert problem({"tensor": "4", "data": "8"}) == (
        f"data=8, tensor=4: their product is 32, which does not divide {slice_}; lower one of them"
    )
    assert problem({"tensor": "4", "fsdp": "2"}) == (
        f"fsdp=2, tensor=4: their product is 8 of {slice_}; leave fsdp out, then it is what is left"
    )
    assert problem({"fsdp": "2"}) == f"fsdp=2: that is 2 of {slice_}; leave fsdp out, then it is what is left"
    assert problem({"tensor": "-1", "data": "-1"}) == (
        f"data=-1 and tensor=-1: only one key can be what is left of {slice_}; write a number for the others"
    )
    for wrong in ("x", "0", "-2", "", "1.0", "9" * 10):
        assert problem({"tensor": wrong}) == (
            f"tensor: '{wrong}' is not a whole number from 1, or -1 for what is left of {slice_}; write one"
        )


def test_of_many_factors_the_nearest_are_named() -> None:
    assert problem({"tensor": "7"}, total=8960 * 3 // 7, what="the slice") == (
        "tensor=7 does not divide the slice; use 6 or 8"
    )
