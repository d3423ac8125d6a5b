"""Fields that the API server does not know, that it misses, or that hold something else than they should.

The API server drops a field that it does not know, unless it is asked for strict validation, as kubectl does. What is
wrong is reported, and the rest is judged as it was meant: a misspelt field under its right name, a number in quotes as
a number, anything else that cannot be used as not there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from admission.api_server.field_types import FieldType, meant_by, of_many, types
from admission.result import Reason, Verdict
from vocabulary.printable import brief
from vocabulary.quantity import NotAQuantity, parse

_WHOLE = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
# Lists in which a Job may repeat what the schemas of JobSet and KubeRay forbid (Kubernetes 1.34, pkg/apis/core).
_REPEATABLE_IN_A_JOB = ("env", "ports", "hostAliases", "imagePullSecrets")
# A Job is held against no schema; its validation asks for everything that schemas do but this (tried).
_LEFT_OUT_OF_A_JOB = (("PodFailurePolicy", "rules"),)
_OBJECTS_OF_TEXTS = ("preference", "podAffinityTerm")  # required, and nothing but texts and numbers is in them
# The API server refuses negative ones in a Job (pkg/apis/batch/validation, ValidateNonnegativeField). JobSet and
# KubeRay take them, and neither Kueue nor the Job that is created from them does.
_NOT_NEGATIVE = {
    "JobSpec": (
        *("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex"),
        *("ttlSecondsAfterFinished", "maxFailedIndexes"),
    ),
    "ReplicatedJobs": ("replicas",),
    "WorkerGroupSpecs": ("replicas", "numOfHosts"),
}


def checked(manifest: Mapping[str, Any], kind: str) -> tuple[dict[str, Any], list[Reason]]:
    """The manifest as far as it can be used, and everything that strict validation refuses of it."""
    walk = _Walk(kind)
    return walk.fields_of(manifest, kind, path="", above=()) or {}, walk.reasons


@dataclass
class _Walk:
    kind: str
    reasons: list[Reason] = field(default_factory=list)

    def fields_of(self, value: object, type_: str, *, path: str, above: tuple[str, ...]) -> dict[str, Any] | None:
        if not isinstance(value, Mapping):
            self._wrong(path, value, "a mapping of fields")
            return None
        known, clean = types()[type_], {}
        seen = set()
        for key, inner in value.items():
            name, place = str(key), f"{path}.{key}" if path else str(key)
            if key not in known.fields:
                name, fix = meant_by(name, type_, above)
                what = "there is no such field; kubectl refuses it, and others lose it unseen"
                self._refuse("unknown-field", place, what, fix)
                if not name or name in value:
                    continue
            seen.add(name)
            if inner is not None:
                clean[name] = self._value(inner, known.fields[name], path=place, above=(*above, type_))
                self._not_negative(type_, name, clean, place)
        for name in known.required:
            if self.kind == "Job" and (type_, name) in _LEFT_OUT_OF_A_JOB:
                continue
            if name not in seen or value.get(name, 0) is None:
                later = self.kind != "Job" and _is_filled_in(name, known.fields[name])
                self._refuse("missing-field", f"{path}.{name}" if path else name, "is missing", "add it", later=later)
        return {name: inner for name, inner in clean.items() if inner is not None}

    def _value(self, value: object, kind: FieldType, *, path: str, above: tuple[str, ...]) -> Any:
        if kind.shape == ":":
            return self.fields_of(value, kind.inner, path=path, above=above)
        if kind.shape == "[":
            return self._list(value, kind, path=path, above=above)
        if kind.shape == "{":
            return self._mapping(value, of_many(kind), path=path, above=above)
        return self._scalar(value, kind, path=path)

    def _mapping(
        self, value: object, each_is: FieldType, *, path: str, above: tuple[str, ...]
    ) -> dict[str, Any] | None:
        if not isinstance(value, Mapping):
            self._wrong(path, value, "a mapping")
            return None
        values = {
            str(key): self._value(_given(item, each_is), each_is, path=f"{path}.{key}", above=above)
            for key, item in value.items()
        }
        return {key: item for key, item in values.items() if item is not None}

    def _list(self, value: object, kind: FieldType, *, path: str, above: tuple[str, ...]) -> list[Any] | None:
        if not isinstance(value, list):
            self._wrong(path, value, "a list")
            return None
        each_is = of_many(kind)
        items = [
            self._value(_given(item, each_is), each_is, path=f"{path}[{index}]", above=above)
            for index, item in enumerate(value)
        ]
        if kind.range and not kind.range.holds(len(value)):
            self._refuse("out-of-range", path, f"has {len(value)} items", f"have {kind.range}")
        self._differ(items, kind, path)
        return [item for item in items if item is not None]

    def _differ(self, items: list[Any], kind: FieldType, path: str) -> None:
        if not kind.keys or (self.kind == "Job" and path.rpartition(".")[2] in _REPEATABLE_IN_A_JOB):
            return
        seen = set()
        for index, item in enumerate(items):
            if isinstance(item, dict):
                name = tuple(item.get(key, "TCP" if key == "protocol" else "") for key in kind.keys)
                if name in seen and (all(name) or self.kind != "Job"):
                    shown = ", ".join(map(str, name))
                    code, place = "same-name", f"{path}[{index}].{kind.keys[0]}"
                    self._refuse(code, place, f"'{shown}' is there twice", f"each {' and '.join(kind.keys)} once")
                seen.add(name)

    def _scalar(self, value: object, kind: FieldType, *, path: str) -> Any:
        if kind.shape == "#":
            return self._number(value, kind, path)
        if kind.shape == "~":
            return self._quantity(value, path)
        if kind.shape == "?":
            if not isinstance(value, bool):
                self._wrong(path, value, "true or false")
                return {"true": True, "false": False}.get(str(value).lower()) if isinstance(value, str) else None
        elif kind.shape == "":
            if not isinstance(value, str):
                self._wrong(path, value, "text")
                return _as_text(value)
            if kind.values and value not in kind.values:
                self._refuse("unknown-value", path, f"{brief(value)} is not one of its values", _one_of(kind.values))
                return None
        return value

    def _number(self, value: object, kind: FieldType, path: str) -> int | None:
        bits = 63 if kind.inner == "#" else 31
        number = value
        if isinstance(value, bool) or not isinstance(value, int):
            self._wrong(path, value, "a whole number")
            number = int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else None
        elif not -(2**bits) <= value < 2**bits:
            self._wrong(path, value, f"a whole number of {bits + 1} bits")
            number = None
        elif kind.range and not kind.range.holds(value):
            self._refuse("out-of-range", path, f"is {value}", f"set {kind.range}")
            number = None
        return number if isinstance(number, int) and -(2**31) <= number < 2**31 else None

    def _quantity(self, value: object, path: str) -> object | None:
        try:
            number = parse(value)
        except NotAQuantity as error:
            self._refuse("wrong-type", path, _templated(str(error), value), "write a quantity")
            return None
        if number < 0:
            what = f"{brief(value)} is less than nothing"
            self._refuse("negative", path, what, "set 0 or more", later=self.kind != "Job")
            return None
        return value

    def _not_negative(self, type_: str, name: str, clean: dict[str, Any], place: str) -> None:
        value = clean[name]
        if name in _NOT_NEGATIVE.get(type_, ()) and isinstance(value, int) and value < 0:
            self._refuse("negative", place, f"{value} is less than nothing", "set 0 or more", later=self.kind != "Job")
            clean[name] = None

    def _wrong(self, path: str, value: object, expected: str) -> None:
        quote = "; put it in quotes" if expected == "text" and isinstance(value, (bool, int, float)) else ""
        what = _templated(f"{brief(value)} is not {expected}", value)
        self._refuse("wrong-type", path or "manifest", what, f"write {expected}{quote}")

    def _refuse(self, code: str, where: str, what: str, fix: str, *, later: bool = False) -> None:
        verdict = Verdict.NEVER if later else Verdict.REFUSED
        what += f"; the {self.kind} is accepted, but never starts" if later else ""
        self.reasons.append(Reason(verdict=verdict, code=code, where=where, what=what, fix=fix))


def _given(value: object, kind: FieldType) -> object:
    """A value of a list or mapping; null is taken for an empty one."""
    empty: dict[str, object] = {":": {}, "": "", "~": "0"}
    return empty.get(kind.shape) if value is None else value


def _is_filled_in(name: str, kind: FieldType) -> bool:
    """Whether a webhook writes an empty value where there is none, with which the schema is content.

    Go writes out every field that is not marked to be left out, so what has passed a mutating webhook has empty texts
    and zeros for what is missing, and null for a list, which the schema refuses.
    """
    return name in _OBJECTS_OF_TEXTS or (kind.shape in ("", "#") and not kind.values)


def _as_text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) and abs(value) < 2**63 else None


def _templated(what: str, value: object) -> str:
    return what + " (a template: check the rendered manifest instead)" * ("${" in brief(value))


def _one_of(values: tuple[str, ...]) -> str:
    return f"use {', '.join(values[:-1])} or {values[-1]}" if len(values) > 1 else f"use {values[0]}"
