"""Fields that the API server does not know, that it misses, or that hold something else than they should.

The API server drops a field that it does not know, unless it is asked for strict validation, as kubectl does.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from environment.admission.field_table import TYPES
from environment.admission.manifest import Workload
from environment.admission.result import Reason, Verdict
from environment.quantity import brief

_FIELD = re.compile(r"(!?)([^!:#?*{\[]+)(.*)")
_DEEPEST_HINT = 4  # levels below, where a field is looked for that stands in the wrong place


@dataclass(frozen=True)
class _Kind:
    """What a field holds: `shape` is "", "#", "?", "*", ":", "[" or "{", as in the table; `inner` what is in it."""

    shape: str
    inner: str = ""  # of an object, the name of its type; of a list or mapping, the notation of what it holds


@dataclass(frozen=True)
class _Type:
    fields: Mapping[str, _Kind]
    required: tuple[str, ...]


def field_reasons(workload: Workload) -> Iterator[Reason]:
    """Everything in the manifest that strict validation refuses. Quantities are looked at elsewhere."""
    yield from _object(workload.manifest.value, workload.kind, path="", above=())


@cache
def _types() -> Mapping[str, _Type]:
    found = {}
    for line in TYPES.replace("\n  ", " ").strip().splitlines():
        name, _, fields = line.partition(": ")
        matches = [match for match in map(_FIELD.fullmatch, fields.split()) if match]
        found[name] = _Type(
            fields={match[2]: _kind(match[3]) for match in matches},
            required=tuple(match[2] for match in matches if match[1]),
        )
    return found


def _kind(notation: str) -> _Kind:
    shape, rest = notation[:1], notation[1:]
    return _Kind(shape, rest[:-1] if shape in ("[", "{") else rest)


def _object(value: object, type_: str, *, path: str, above: tuple[str, ...]) -> Iterator[Reason]:
    if not isinstance(value, Mapping):
        yield _wrong(path, value, "a mapping of fields")
        return
    known = _types()[type_]
    for key, inner in value.items():
        place = f"{path}.{key}" if path else str(key)
        if key not in known.fields:
            yield _unknown(str(key), type_, place, above)
        elif inner is not None:
            yield from _value(inner, known.fields[key], path=place, above=(*above, type_))
    for key in known.required:
        if value.get(key) is None:
            yield _refused("missing-field", f"{path}.{key}" if path else key, "is missing", "add it")


def _value(value: object, kind: _Kind, *, path: str, above: tuple[str, ...]) -> Iterator[Reason]:
    if kind.shape == ":":
        yield from _object(value, kind.inner, path=path, above=above)
    elif kind.shape == "[":
        if isinstance(value, list):
            for index, each in enumerate(value):
                yield from _value(each, _of_many(kind), path=f"{path}[{index}]", above=above)
        else:
            yield _wrong(path, value, "a list")
    elif kind.shape == "{":
        if isinstance(value, Mapping):
            for key, each in value.items():
                yield from _value(each, _of_many(kind), path=f"{path}.{key}", above=above)
        else:
            yield _wrong(path, value, "a mapping")
    elif kind.shape == "#" and (isinstance(value, bool) or not isinstance(value, int)):
        yield _wrong(path, value, "a whole number")
    elif kind.shape == "?" and not isinstance(value, bool):
        yield _wrong(path, value, "true or false")
    elif kind.shape == "" and not isinstance(value, str):
        yield _wrong(path, value, "text")


def _of_many(kind: _Kind) -> _Kind:
    """What each one of a list or mapping is: a type's name stands for an object."""
    return _Kind(":", kind.inner) if kind.inner[:1].isalpha() else _kind(kind.inner)


def _unknown(key: str, type_: str, place: str, above: tuple[str, ...]) -> Reason:
    fields = _types()[type_].fields
    same = [field for field in fields if field.lower() == key.lower()]
    nearest = same or difflib.get_close_matches(key[:64], fields, n=1, cutoff=0.7)
    if nearest:
        fix = f"did you mean {nearest[0]}?"
    elif below := _below(key, type_):
        fix = f"it belongs in {below}"
    elif any(key in _types()[each].fields for each in above):
        fix = "it belongs further out: check the indentation"
    else:
        fix = "remove it"
    return _refused(
        "unknown-field", place, "there is no such field; kubectl refuses it, and others lose it unseen", fix
    )


def _below(key: str, type_: str) -> str:
    """The way from a type to the nearest of its objects that has the field, such as `template.spec`."""
    level = [("", type_)]
    for _ in range(_DEEPEST_HINT):
        level = [
            (f"{path}.{name}".lstrip("."), kind.inner)
            for path, each in level
            for name, kind in _types()[each].fields.items()
            if kind.shape in (":", "[") and kind.inner in _types()
        ]
        for path, each in level:
            if key in _types()[each].fields:
                return path
    return ""


def _wrong(path: str, value: object, wanted: str) -> Reason:
    quote = "; put it in quotes" if wanted == "text" and isinstance(value, (bool, int, float)) else ""
    return _refused("wrong-type", path or "manifest", f"{brief(value)} is not {wanted}", f"write {wanted}{quote}")


def _refused(code: str, where: str, what: str, fix: str) -> Reason:
    return Reason(verdict=Verdict.REFUSED, code=code, where=where, what=what, fix=fix)
