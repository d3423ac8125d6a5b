"""What the compiler answered, read from the JSON that the recipe's program prints and the cache keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class NotAnAnswer(ValueError):
    """JSON that is no answer: written by another program, or damaged."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """What takes memory at the peak. `shape` and `operation` are those of one temporary, and "" for a sum."""

    name: str
    bytes: int
    shape: str = ""
    operation: str = ""


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A step that was compiled. Bytes and floating-point operations are those of one device.

    `model_flops` is what MaxText counts for the model's forward and backward pass, None where it cannot. XLA's own
    count, `xla_flops`, has the body of a loop once. `tokens` are those of a step of the whole run.
    """

    peak_bytes: int
    argument_bytes: int
    output_bytes: int
    tokens: int
    xla_flops: float | None
    model_flops: float | None
    parts: tuple[Part, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class TooLarge:
    """A step that takes more memory of a device than it has."""

    required_bytes: int
    available_bytes: int
    parts: tuple[Part, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Refused:
    """What MaxText or the compiler refused, with the type of the exception and its text."""

    kind: str
    message: str
    seconds: float


Answer = Compiled | TooLarge | Refused


def answer_from(read: object) -> Answer:
    """The answer that this JSON is. Raises NotAnAnswer."""
    try:
        return _answer(read)
    except (KeyError, TypeError, AttributeError):
        raise NotAnAnswer("no answer of the program that compiles") from None


def _answer(read: Any) -> Answer:
    seconds = _number(read["seconds"])
    match read["outcome"]:
        case "compiled":
            return Compiled(
                peak_bytes=_count(read["peak_bytes"]),
                argument_bytes=_count(read["argument_bytes"]),
                output_bytes=_count(read["output_bytes"]),
                tokens=_count(read["tokens"]),
                xla_flops=_number_or_none(read["xla_flops"]),
                model_flops=_number_or_none(read["model_flops"]),
                parts=tuple(_part(part) for part in read["parts"]),
                seconds=seconds,
            )
        case "too large":
            return TooLarge(
                required_bytes=_count(read["required_bytes"]),
                available_bytes=_count(read["available_bytes"]),
                parts=tuple(_part(part) for part in read["parts"]),
                seconds=seconds,
            )
        case "refused":
            return Refused(kind=_text(read["kind"]), message=_text(read["message"]), seconds=seconds)
    raise KeyError("outcome")


def _part(read: Mapping[str, Any]) -> Part:
    return Part(
        name=_text(read["name"]),
        bytes=_count(read["bytes"]),
        shape=_text(read.get("shape", "")),
        operation=_text(read.get("operation", "")),
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return float(value)


def _number_or_none(value: object) -> float | None:
    return None if value is None else _number(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
