"""The keys that --set takes, and what a value of each kind is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from environment.fleet.values import meant

LONGEST_VALUE = 10_000  # characters: the names of the buckets of 150 teams

_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One key. `default` is a good value of its kind, or None where there is none; then it may be required.

    `on_spot` is the default on spot slices, where it is another. `example` is a good value of a required one. `choices`
    are those of the kind `choice`. `least` and `most` bound a count or a number, and are themselves possible.
    """

    kind: str
    help: str
    default: str | None = None
    on_spot: str | None = None
    required: bool = False
    example: str | None = None
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None

    def value(self, text: str) -> str:
        """The value as it is filled in. Raises ValueError with what is wrong; it reads on after the value."""
        value = KINDS[self.kind](text, self.choices)
        if self.least is not None and float(value) < self.least:
            raise ValueError(f"is too low; the least is {self.least}")
        if self.most is not None and float(value) > self.most:
            raise ValueError(f"is too high; the most is {self.most}")
        return value


def _count(text: str, _: tuple[str, ...]) -> str:
    if re.fullmatch("[0-9]{1,12}", text):
        return str(int(text))
    raise ValueError("is not a whole number from 0; write one such as 100")


def _number(text: str, _: tuple[str, ...]) -> str:
    if len(text) <= 40 and re.fullmatch(_NUMBER, text):
        return text
    raise ValueError("is not a number; write one such as 0.5 or 3e-5")


def _flag(text: str, _: tuple[str, ...]) -> str:
    if text.lower() in ("true", "false"):
        return text.lower()
    raise ValueError("is neither true nor false; write one of them")


def _choice(text: str, choices: tuple[str, ...]) -> str:
    if text in choices:
        return text
    raise ValueError(f"is not one of the choices{meant(text, choices)}")


def text_value(text: str, _: tuple[str, ...] = ()) -> str:
    """Any text of one line. Raises ValueError, as Parameter.value."""
    if len(text) > LONGEST_VALUE:
        raise ValueError(f"is {len(text)} characters long; no value is longer than {LONGEST_VALUE}")
    if not text.isprintable():
        raise ValueError("has a character that cannot be printed, such as a tab or the end of a line; remove it")
    return text


BOUNDED = ("count", "number")  # the kinds whose values can have a least and a most

# By the word in parameters.yaml. Each takes what was written and the choices, and raises ValueError.
KINDS: Mapping[str, Callable[[str, tuple[str, ...]], str]] = {
    "count": _count,
    "number": _number,
    "flag": _flag,
    "choice": _choice,
    "text": text_value,
}
