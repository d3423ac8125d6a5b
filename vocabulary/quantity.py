"""Kubernetes quantities: "16", "500m", "64Gi" <-> exact numbers, written the way the API server writes them back."""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil, floor

from vocabulary.printable import brief

# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_QUANTITY = re.compile(
    r"([+-]?)(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,2}|)", re.ASCII
)
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

GIB = 2**30


class NotAQuantity(ValueError):
    """Text that Kubernetes would not take for a quantity."""


def parse(value: object) -> Fraction:
    """The number that a quantity stands for: "500m" is 1/2, "1Ki" is 1024. Raises NotAQuantity."""
    known = isinstance(value, (float, str)) or (type(value) is int and value.bit_length() < 128)
    match = _QUANTITY.fullmatch(str(value)) if known else None
    if match is None:
        raise NotAQuantity(f"{brief(value)} is not a quantity such as 4, 500m or 64Gi")
    sign, digits, suffix = match.groups()
    number = Fraction(digits.rstrip(".") or "0")
    if suffix in _BINARY:
        number *= Fraction(1024) ** (_BINARY.index(suffix) + 1)
    elif suffix in _DECIMAL:
        number *= Fraction(10) ** _DECIMAL[suffix]
    else:
        number *= Fraction(10) ** int(suffix[1:])
    return -number if sign == "-" else number


def count(number: int) -> str:
    """A whole number of things (cores, chips) in canonical form: 16 is "16", 2000 is "2k".

    Kueue's webhooks write every quantity back canonically, so any other form would be a difference in every plan.
    """
    for suffix, exponent in reversed(_DECIMAL.items()):
        if exponent > 0 and number and number % 10**exponent == 0:
            return f"{number // 10**exponent}{suffix}"
    return str(number)


def decimal(number: Fraction) -> str:
    """A number of at most three decimals in canonical form: 3 is "3", 1.5 is "1500m"."""
    return count(int(number)) if number.denominator == 1 else f"{int(number * 1000)}m"


def gibibytes(number: int) -> str:
    """A whole number of GiB in canonical form: 64 is "64Gi", 2048 is "2Ti", 0 is "0"."""
    if number == 0:
        return "0"
    step = _BINARY.index("Gi")
    while number % 1024 == 0 and step + 1 < len(_BINARY):
        number, step = number // 1024, step + 1
    return f"{number}{_BINARY[step]}"


def readable(resource: str, number: Fraction, *, up: bool = False) -> str:
    """An amount for people: memory in the largest binary unit it fills, the rest as a plain number.

    Rounded down, so that what a message says there is can be asked for; `up` is for what is asked.
    """
    if resource in ("memory", "ephemeral-storage"):
        for power in range(len(_BINARY), 0, -1):
            if number >= 1024**power:
                return f"{_plain(number / 1024**power, decimals=2, up=up)}{_BINARY[power - 1]}"
    return _plain(number, decimals=3, up=up)


def _plain(number: Fraction, *, decimals: int, up: bool) -> str:
    scaled = (ceil if up else floor)(number * 10**decimals)
    whole, part = divmod(scaled, 10**decimals)
    return f"{whole}.{part:0{decimals}}".rstrip("0").rstrip(".") if part else str(whole)
