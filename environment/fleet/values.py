"""What may stand in a value of fleet.yaml: one function a kind, from text to value.

Each raises ValueError with what is wrong and what to do; the text reads on after the value: `'x' is not ...`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from environment.fleet.model import CapacityMode
from environment.settings import values
from environment.settings.model import MOST_SLICES
from vocabulary.printable import quoted

_MOST_SHOWN = 12  # choices in one message
_PROJECT = r"([a-z0-9.-]{1,63}:)?[a-z][a-z0-9-]{4,28}[a-z0-9]"  # with the domain, of a domain-scoped one
_RESOURCE = "[a-z]([a-z0-9-]{0,61}[a-z0-9])?"  # name of a Compute Engine resource


@dataclass(frozen=True)
class Limit:
    """How many slices of each pool group; None is as many as there are."""

    slices: int | None


NO_LIMIT = Limit(None)


def capacity(text: str) -> CapacityMode:
    modes = [mode.value for mode in CapacityMode]
    if text in modes:
        return CapacityMode(text)
    raise ValueError(f"is not a capacity mode{meant(text, modes)}")


def one_of(what: str, choices: Iterable[str]) -> Callable[[str], str]:
    choices = tuple(choices)

    def parse_(text: str) -> str:
        if text in choices:
            return text
        raise ValueError(f"is no {what}{meant(text, choices)}")

    return parse_


def true_or_false(text: str) -> bool:
    """As YAML 1.1 has it."""
    if text.lower() in ("true", "yes", "on"):
        return True
    if text.lower() in ("false", "no", "off"):
        return False
    raise ValueError("is neither true nor false")


def limit(text: str) -> Limit:
    """All, none, or a number of slices."""
    try:
        return NO_LIMIT if true_or_false(text) else Limit(0)
    except ValueError:
        pass
    try:
        return Limit(whole(0, MOST_SLICES)(text))
    except ValueError:
        raise ValueError(f"is neither true nor false nor a number of slices from 0 to {MOST_SLICES}") from None


def whole(lowest: int, highest: int) -> Callable[[str], int]:
    """A number without leading zeros: to YAML 1.1 `010` is 8, to YAML 1.2 it is 10."""
    count = values.count(lowest, highest)

    def parse_(text: str) -> int:
        return count("" if re.match("0[0-9]", text) else text)

    return parse_


def share(text: str) -> Fraction:
    if re.fullmatch(r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,3})?", text) and Fraction(text) > 0:
        return Fraction(text)
    raise ValueError("is not a share; write a number from 0.001 to 999999 of at most three decimals, such as 3 or 1.5")


def reservation(text: str) -> str:
    if re.fullmatch(f"(projects/{_PROJECT}/reservations/)?{_RESOURCE}", text):
        return text
    raise ValueError(
        "is not the name of a reservation; write NAME, or projects/PROJECT/reservations/NAME, and a block in "
        "reservation_block"
    )


def block(text: str) -> str:
    if re.fullmatch(_RESOURCE, text):
        return text
    raise ValueError("is not the name of a block; `gcloud compute reservations blocks list RESERVATION` shows them")


def meant(typed: str, choices: Iterable[str], *, instead: str = "") -> str:
    """The end of a message: the nearest of what could have been meant, or where nothing is near, the first of all.

    `instead`: what it says where nothing is near and there are too many to list all.
    """
    choices = tuple(choices)
    nearest = difflib.get_close_matches(typed.lower()[:64], choices, n=1, cutoff=0.6)
    if nearest:
        return f"; did you mean {quoted(nearest[0])}?"
    if instead and len(choices) > _MOST_SHOWN:
        return instead
    some = ", ".join(quoted(choice)[1:-1] for choice in choices[:_MOST_SHOWN]) or "none"
    return f"; there are {some}{', ...' if len(choices) > _MOST_SHOWN else ''}"
