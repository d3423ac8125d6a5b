"""The mesh: keys whose product is the number of a slice's devices, or of a run's slices."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from environment.tpu import Slice
from vocabulary.printable import counted, quoted

_REST = "-1"  # as MaxText writes it: what is left
_MOST_DIVISORS = 12  # in one message


@dataclass(frozen=True, kw_only=True)
class MeshPart:
    """One part of a mesh: its keys, and which of them is what is left where it is not set."""

    keys: tuple[str, ...]
    rest: str


@dataclass(frozen=True, kw_only=True)
class Mesh:
    """The keys of a slice's devices, and those of the slices; None where a recipe has no such keys."""

    within_slice: MeshPart | None = None
    across_slices: MeshPart | None = None

    @property
    def parts(self) -> tuple[MeshPart, ...]:
        return tuple(part for part in (self.within_slice, self.across_slices) if part)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for part in self.parts for key in part.keys)


class BadMesh(ValueError):
    """Values that are no mesh. The text has a line for every mistake."""


def devices_per_chip(slice_: Slice) -> int:
    """How many devices JAX shows for one chip: a TensorCore each on tpu7x, else one.

    v4 and v5p have two TensorCores that work as one device (megacore).
    https://cloud.google.com/tpu/docs/system-architecture-tpu-vm, https://cloud.google.com/tpu/docs/tpu7x
    """
    return 2 if slice_.generation == "tpu7x" else 1


def devices(slice_: Slice) -> int:
    """The devices of a slice, as JAX counts them."""
    return slice_.chips * devices_per_chip(slice_)


def devices_text(slice_: Slice) -> str:
    """ "the 16 chips of a v6e-16 slice" """
    chips = counted(slice_.chips, "chip")
    if devices_per_chip(slice_) == 1:
        return f"the {chips} of a {slice_.tpu_type} slice"
    per_chip = devices_per_chip(slice_)
    return f"the {devices(slice_)} devices of a {slice_.tpu_type} slice ({chips}, {per_chip} devices a chip)"


def factors(part: MeshPart, given: Mapping[str, str], total: int, what: str) -> dict[str, int]:
    """The factor of every key: those given, 1 for the others, and what is left for one of them.

    -1 is what is left; where no key is -1, it is `part.rest`, unless that is given too. The product is `total`, which
    `what` names in a message: "the 16 chips of a v6e-16 slice". Raises BadMesh.
    """
    given = {key: given[key] for key in part.keys if key in given}
    if mistakes := list(_not_numbers(given, what)):
        raise BadMesh("\n".join(mistakes))
    open_ = [key for key, value in given.items() if value == _REST]
    numbers = {key: int(value) for key, value in given.items() if value != _REST}
    if len(open_) > 1:
        shown = " and ".join(f"{key}=-1" for key in open_)
        raise BadMesh(f"{shown}: only one key can be what is left of {what}; write a number for the others")
    if mistakes := [
        f"{key}={number} does not divide {what}; {_use(number, total)}"
        for key, number in numbers.items()
        if total % number
    ]:
        raise BadMesh("\n".join(mistakes))
    rest = open_[0] if open_ else part.rest
    product = math.prod(numbers.values())
    shown = ", ".join(f"{key}={number}" for key, number in numbers.items())
    if total % product:
        raise BadMesh(f"{shown}: their product is {product}, which does not divide {what}; lower one of them")
    if rest not in numbers:
        numbers[rest] = total // product
    elif product != total:
        product_text = f"their product is {product}" if len(numbers) > 1 else f"that is {product}"
        raise BadMesh(f"{shown}: {product_text} of {what}; leave {rest} out, then it is what is left")
    return {key: numbers.get(key, 1) for key in part.keys}


def _not_numbers(given: Mapping[str, str], what: str) -> Iterator[str]:
    for key, value in given.items():
        if value != _REST and not re.fullmatch("[1-9][0-9]{0,8}", value):
            yield f"{key}: {quoted(value)} is not a whole number from 1, or -1 for what is left of {what}; write one"


def _use(number: int, total: int) -> str:
    divisors = [divisor for divisor in range(1, total + 1) if total % divisor == 0]
    if len(divisors) > _MOST_DIVISORS:
        below = max(divisor for divisor in divisors if divisor <= number)
        above = min((divisor for divisor in divisors if divisor > number), default=below)
        divisors = sorted({below, above})
    shown = [str(divisor) for divisor in divisors]
    return f"use {' or '.join(filter(None, (', '.join(shown[:-1]), shown[-1])))}"
