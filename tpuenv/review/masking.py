"""Keeps the sensitive values of a plan out of what is shown and recorded.

Terraform marks them where they are configured. What a provider copies from there into an attribute of its own has no
mark, so a value that holds a marked one is masked wherever it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

SENSITIVE = "(sensitive value"  # Followed by a digest of it and a bracket.

# The digest of a short secret can be guessed; this many rounds make every guess take some milliseconds.
_ROUNDS = 10_000

# A shorter secret occurs in other values by chance. It is masked only where it is marked.
_SHORTEST = 4


@dataclass(frozen=True, kw_only=True)
class Mask:
    """Writes values as JSON text, the sensitive ones as a digest with `salt`. `secrets` are in JSON's spelling."""

    salt: str
    secrets: frozenset[str] = frozenset()

    def within(self, place: str) -> Mask:
        """The same for a part of the plan: equal secrets in two places have two digests."""
        return replace(self, salt=f"{self.salt}/{place}")

    def text(self, value: Any, *, path: str, marked: bool) -> str:
        """The text of a value at a path; `marked` says that it is sensitive, or a part of it."""
        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
        if not marked and not any(secret in text for secret in self.secrets):
            return text
        digest = hashlib.pbkdf2_hmac("sha256", text.encode(), f"{self.salt}/{path}".encode(), _ROUNDS).hex()
        return f"{SENSITIVE}, digest {digest[:32]})"


def mask_of(plan: Mapping[str, Any], *, salt: str) -> Mask:
    """The mask for a plan in Terraform's JSON: it knows every sensitive text that the plan marks anywhere."""
    secrets = {text for value, marks in _marks(plan) for text in _secrets(value, marks) if len(text) >= _SHORTEST}
    once = {_inside(text) for text in secrets}
    # JSON that is itself a value, as a policy is, spells it twice.
    return Mask(salt=salt, secrets=frozenset(once | {_inside(text) for text in once}))


def _inside(text: str) -> str:
    """As it is spelled between quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _marks(plan: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Each value of the plan that has marks beside it, and those."""
    entries = [*plan.get("resource_changes", ()), *plan.get("resource_drift", ())]
    for change in [*(entry["change"] for entry in entries), *plan.get("output_changes", {}).values()]:
        for side in ("before", "after"):
            yield change.get(side), change.get(f"{side}_sensitive", False)
    for values in (plan.get("prior_state", {}).get("values", {}), plan.get("planned_values", {})):
        for resource in _resources(values.get("root_module", {})):
            yield resource.get("values"), resource.get("sensitive_values", False)


def _resources(module: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from module.get("resources", ())
    for child in module.get("child_modules", ()):
        yield from _resources(child)


def _secrets(value: Any, marks: Any) -> Iterator[str]:
    """The texts of a value that are marked, or are part of something that is."""
    if isinstance(value, str):
        if marks is True:
            yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _secrets(part, marks is True or (marks.get(key) if isinstance(marks, dict) else False))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            inner = marks[number] if isinstance(marks, list) and number < len(marks) else False
            yield from _secrets(part, marks is True or inner)
