"""Reads fields.txt: which fields a type has, what they hold, and what a misspelt one was meant to be.

tests/generate/field_table.py writes the file from the schemas of JobSet 0.12.0 (which hold those of Jobs and pods) and
KubeRay 1.7.0. A line is a type and its fields: `name` is text, `name#` a whole number of 32 bits and `name##` of 64,
`name?` true or false, `name~` a quantity, `name*` anything, `name:Type` an object, `name[Type]` a list and `name{Type}`
a mapping to them ([] and {} of text); `!` before a name: it must be there. In <> stand the values that a text may have,
the range of a number, or of a list the fields by which its items differ and how many they may be.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).with_name("fields.txt")
_FIELD = re.compile(r"(!?)([^!:#?~*{\[<]+)([^<]*)(?:<(.*)>)?")
_DEEPEST_HINT = 4  # levels of objects that are searched for a field which stands too high up


@dataclass(frozen=True)
class Range:
    lowest: int | None
    highest: int | None

    def holds(self, number: int) -> bool:
        return (self.lowest is None or number >= self.lowest) and (self.highest is None or number <= self.highest)

    def __str__(self) -> str:
        if self.highest is None:
            return f"{self.lowest} or more"
        return f"{self.highest} or fewer" if self.lowest is None else f"{self.lowest} to {self.highest}"


@dataclass(frozen=True)
class FieldType:
    """What a field holds: `shape` is "", "#", "?", "~", "*", ":", "[" or "{" of the table; `inner` what is in it."""

    shape: str
    inner: str = ""  # of an object, the name of its type; of a list or mapping, the notation of what it holds
    values: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    range: Range | None = None


@dataclass(frozen=True)
class ObjectType:
    fields: Mapping[str, FieldType]
    required: tuple[str, ...]


@cache
def types() -> Mapping[str, ObjectType]:
    types_by_name = {}
    for line in _TABLE.read_text(encoding="utf-8").replace("\n  ", " ").strip().splitlines():
        name, _, fields = line.partition(": ")
        matches = [match for match in map(_FIELD.fullmatch, fields.split()) if match]
        types_by_name[name] = ObjectType(
            fields={match[2]: _field_type(match[3], match[4] or "") for match in matches},
            required=tuple(match[2] for match in matches if match[1]),
        )
    return types_by_name


def _field_type(notation: str, limits: str = "") -> FieldType:
    shape, rest = notation[:1], notation[1:]
    keys, _, range_ = limits.rpartition(";")
    lowest, dots, highest = range_.partition("..")
    return FieldType(
        shape,
        rest[:-1] if shape in ("[", "{") else rest,
        values=tuple(limits.split("|")) if limits and shape == "" else (),
        keys=tuple(keys.split("+")) if keys else (),
        range=Range(int(lowest) if lowest else None, int(highest) if highest else None) if dots else None,
    )


def of_many(kind: FieldType) -> FieldType:
    """What each one of a list or mapping is: a type's name stands for an object."""
    return FieldType(":", kind.inner) if kind.inner[:1].isalpha() else _field_type(kind.inner)


def meant_by(key: str, type_: str, above: tuple[str, ...]) -> tuple[str, str]:
    """The field of this type that was meant, empty if none is near, and what to do."""
    fields = types()[type_].fields
    same = [item for item in fields if item.lower() == key.lower()]
    nearest = same or difflib.get_close_matches(key[:64], fields, n=1, cutoff=0.7)
    if nearest:
        return nearest[0], f"did you mean {nearest[0]}?"
    if below := _below(key, type_):
        return "", f"it belongs in {below}"
    if any(key in types()[item].fields for item in above):
        return "", "it belongs further out: check the indentation"
    return "", "remove it"


def _below(key: str, type_: str) -> str:
    """The way from a type to the nearest of its objects that has the field, such as `template.spec`."""
    level = [("", type_)]
    for _ in range(_DEEPEST_HINT):
        level = [
            (f"{path}.{name}".lstrip("."), kind.inner)
            for path, item in level
            for name, kind in types()[item].fields.items()
            if kind.shape in (":", "[") and kind.inner in types()
        ]
        for path, item in level:
            if key in types()[item].fields:
                return path
    return ""
