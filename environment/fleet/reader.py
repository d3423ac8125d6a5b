"""Reads mappings, lists and single values of fleet.yaml, and collects every problem with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from environment.fleet.values import meant
from environment.members import MOST_MEMBERS
from environment.problems import Problem
from environment.settings.model import LONGEST_VALUE
from environment.tpu import UnknownTpuType
from vocabulary.printable import quoted
from vocabulary.yaml_text import MERGE, Value

MOST_NAMES = MOST_MEMBERS  # of pool groups and of teams, too: more than Kueue is designed for

Parse = Callable[[str], object]  # from text to value; raises ValueError with what is wrong


@dataclass(kw_only=True)
class Reader:
    """Reads the values of a file; collects their problems, and the place of each key for the messages of later checks.

    `keys` has, by path (`tpu_pools.dev.zone`), what a message about that key begins with: file, line and path.
    """

    name: str  # of the file
    problems: list[Problem] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)

    def place(self, value: Value) -> str:
        return f"{self.name}:{value.line}: {value.path}".removesuffix(": ")

    def complain(self, value: Value, message: str) -> None:
        self.problems.append(Problem(keys=(self.place(value),), message=message))

    def mapping(self, value: Value, holds: str) -> dict[str, Value]:
        """The values of a mapping by key; of a key that is there twice the first."""
        if value.pairs is None:
            self.complain(value, f"{_kind(value)}; it should hold {holds}")
            return {}
        values: dict[str, Value] = {}
        if len(value.pairs) > MOST_NAMES:
            self.complain(value, f"holds {len(value.pairs)} keys; no part of it takes more than {MOST_NAMES}")
            return {}
        for key, inner in value.pairs:
            if key in values:
                self.complain(inner, f"is there twice, on lines {values[key].line} and {inner.line}; keep one")
            elif key == MERGE:
                self.complain(inner, "merges another mapping, which is not understood here; write its keys out")
            elif not key:
                self.complain(value, f"line {inner.line} has a key that is empty or no text; it should hold {holds}")
            else:
                values[key] = inner
                self.keys[inner.path] = self.place(inner)
        return values

    def known(self, values: Mapping[str, Value], keys: Iterable[str]) -> dict[str, Value]:
        """The values without those whose key means nothing."""
        keys = tuple(keys)
        for key, value in values.items():
            if key not in keys:
                self.complain(value, f"is not a key{meant(key, keys)}")
        return {key: value for key, value in values.items() if key in keys}

    def parsed(self, value: Value, parse_: Parse) -> Any:
        """What a single value means, or None, which no parser returns for a good one."""
        text = value.text
        if text is None or value.empty:
            self.complain(value, f"{_kind(value)}; write one value")
        elif len(text) > LONGEST_VALUE:
            self.complain(
                value, f"{quoted(text)} is {len(text)} characters long; no value is longer than {LONGEST_VALUE}"
            )
        else:
            try:
                return parse_(text)
            except UnknownTpuType as error:
                self.complain(value, str(error))
            except ValueError as error:
                self.complain(value, f"{quoted(text)} {error}")
        return None

    def listed(self, value: Value, parse_: Parse) -> list[Any]:
        """What the values of a list mean, without the bad ones."""
        items = value.items
        if not items:
            what = _kind(value) if items is None else "is an empty list"
            self.complain(value, f"{what}; write a list such as [a, b], or leave the key out")
            return []
        if len(items) > MOST_NAMES:
            self.complain(value, f"lists {len(items)}; no list takes more than {MOST_NAMES}, but a Google group does")
            return []
        parsed: list[Any] = []
        for item in items:
            value_of_item = self.parsed(item, parse_)
            if value_of_item in parsed:
                self.complain(item, f"{quoted(item.text or '')} is there twice; keep one")
            elif value_of_item is not None:
                parsed.append(value_of_item)
        return parsed


def _kind(value: Value) -> str:
    if value.empty:
        return "is empty"
    if value.items is not None:
        return "is a list"
    return "is one value" if value.pairs is None else "holds keys of its own"
