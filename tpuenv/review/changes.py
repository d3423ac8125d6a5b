"""What a plan would do, from `terraform show -json`: every change with its values, sensitive ones masked.

https://developer.hashicorp.com/terraform/internals/json-format#plan-representation
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpuenv.review.masking import Mask, mask_of

UNKNOWN = "(known after apply)"
NOTHING = "(nothing)"

_ACTIONS = {
    ("no-op",): "none",
    ("read",): "read",
    ("create",): "create",
    ("update",): "change",
    ("delete",): "delete",
    ("delete", "create"): "replace",
    ("create", "delete"): "replace",
    ("create", "forget"): "replace",
    ("forget",): "forget",
}

_REASONS = {
    "replace_because_tainted": "its creation was not finished",
    "replace_because_cannot_update": "it cannot be changed in place",
    "replace_by_request": "requested",
    "replace_by_triggers": "a resource that triggers its replacement changes",
    "delete_because_no_resource_config": "it is no longer in the configuration",
    "delete_because_no_module": "it is no longer in the configuration",
    "delete_because_wrong_repetition": "it is no longer in the configuration",
    "delete_because_count_index": "it is no longer in the configuration",
    "delete_because_each_key": "it is no longer in the configuration",
    "delete_because_no_move_target": "what it was moved to is not in the configuration",
}
TAINTED = _REASONS["replace_because_tainted"]


@dataclass(frozen=True, kw_only=True)
class Value:
    """One value: its path ("node_config[0].disk_size_gb"), and both sides as JSON text or in brackets."""

    path: str
    before: str
    after: str
    replaces: bool = False


@dataclass(frozen=True, kw_only=True)
class Change:
    """What would happen to one object. `action`: create, change, replace, delete, read, forget, import, move.

    `values` are those that change; of an object that is created or replaced all of them.
    """

    address: str
    action: str
    reason: str = ""
    imported: str = ""
    moved_from: str = ""
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Changes:
    """A whole plan: what it does, the outputs that change, and what was changed outside of Terraform (drift)."""

    resources: tuple[Change, ...] = ()
    outputs: tuple[Value, ...] = ()
    drift: tuple[Change, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether an apply would do nothing. Reading a data source is nothing."""
        return not self.outputs and all(change.action == "read" for change in self.resources)


NO_CHANGES = Changes()


def read(plan: Mapping[str, Any], *, salt: str) -> Changes:
    """The changes of a plan in Terraform's JSON, in the order of their addresses.

    A sensitive value is replaced by a digest with `salt`, by which two plans of the same content can be compared.
    """
    mask = mask_of(plan, salt=salt)
    resources = [_change(entry, mask) for entry in plan.get("resource_changes", ())]
    drift = [_change(entry, mask) for entry in plan.get("resource_drift", ())]
    outputs = [
        value
        for name, change in sorted(plan.get("output_changes", {}).items())
        for value in _values(change, mask.within("output"), start=name)
        if change["actions"] != ["no-op"]
    ]
    return Changes(
        resources=_sorted(change for change in resources if change.action != "none"),
        outputs=tuple(outputs),
        drift=_sorted(change for change in drift if change.action != "none"),
    )


def _sorted(changes: Iterator[Change]) -> tuple[Change, ...]:
    return tuple(sorted(changes, key=lambda change: change.address))


def _change(entry: Mapping[str, Any], mask: Mask) -> Change:
    change = entry["change"]
    action = _ACTIONS.get(tuple(change["actions"]), "+".join(change["actions"]))
    imported = (change.get("importing") or {}).get("id") or ""
    moved = entry.get("previous_address", "")
    moved = "" if moved == entry["address"] else moved
    if action == "none" and (imported or moved):
        action = "import" if imported else "move"
    deposed = f" (deposed {entry['deposed']})" if entry.get("deposed") else ""
    values: Sequence[Value] = ()
    if action not in ("delete", "forget"):
        values = _values(change, mask.within(entry["address"]), all_=action == "replace")
    reason = entry.get("action_reason", "")
    return Change(
        address=entry["address"] + deposed,
        action=action,
        reason=_REASONS.get(reason, reason.replace("_", " ") if action in ("replace", "delete") else ""),
        imported=imported,
        moved_from=moved,
        values=tuple(values),
    )


def _values(change: Mapping[str, Any], mask: Mask, *, start: str = "", all_: bool = False) -> list[Value]:
    sides = _Sides(
        before=change.get("before"),
        after=change.get("after"),
        unknown=change.get("after_unknown", False),
        secret_before=change.get("before_sensitive", False),
        secret_after=change.get("after_sensitive", False),
    )
    replacing = [_joined(start, path) for path in change.get("replace_paths", ())]
    return [
        Value(path=path, before=before, after=after, replaces=any(within(path, other) for other in replacing))
        for path, before, after in _leaves(sides, start, mask)
        if all_ or before != after
    ]


class _Missing:
    """Where a list or a map has no element."""


_MISSING = _Missing()


@dataclass(frozen=True, kw_only=True)
class _Sides:
    """A value before and after, and Terraform's marks beside it: the same shape, with `true` where a mark is."""

    before: Any
    after: Any
    unknown: Any
    secret_before: Any
    secret_after: Any

    def at(self, step: str | int) -> _Sides:
        def of(marks: Any) -> Any:
            mark = _element(marks, step)
            return False if mark is _MISSING else mark

        return _Sides(
            before=_element(self.before, step),
            after=_element(self.after, step),
            unknown=of(self.unknown),
            secret_before=of(self.secret_before),
            secret_after=of(self.secret_after),
        )

    @property
    def steps(self) -> list[str | int] | None:
        """The keys or indices of the parts; None where this is compared as one value."""
        parts = [part for part in (self.before, self.after) if not _is_none(part)]
        marked = [self.unknown] if isinstance(self.unknown, dict | list) else []
        shapes = parts or marked
        if shapes and all(isinstance(part, dict) for part in shapes):
            return sorted({key for part in (*parts, *marked) if isinstance(part, dict) for key in part}) or None
        if shapes and all(isinstance(part, list) for part in shapes):
            return list(range(max(len(part) for part in (*parts, *marked) if isinstance(part, list)))) or None
        return None


def _leaves(sides: _Sides, path: str, mask: Mask) -> Iterator[tuple[str, str, str]]:
    """Path, before, after, down to single values; they may be equal."""

    def text(value: Any, marks: Any) -> str:
        if _is_none(value):
            return NOTHING if value is _MISSING else "null"
        return mask.text(value, path=path, marked=_marked(marks))

    whole = sides.unknown is True or True in (sides.secret_before, sides.secret_after)
    steps = None if whole else sides.steps
    if steps is None:
        marks = [sides.secret_before, sides.secret_after]
        yield path, text(sides.before, marks), UNKNOWN if sides.unknown is True else text(sides.after, marks)
        return
    below = [leaf for step in steps for leaf in _leaves(sides.at(step), _joined(path, [step]), mask)]
    if _is_none(sides.before) != _is_none(sides.after) and all(before == after for _, before, after in below):
        # A block that comes or goes without a value in it.
        yield path, text(sides.before, False), text(sides.after, False)
    yield from below


def _is_none(value: Any) -> bool:
    return value is None or value is _MISSING


def _marked(marks: Any) -> bool:
    """Whether there is a mark anywhere."""
    if isinstance(marks, dict):
        return any(_marked(mark) for mark in marks.values())
    if isinstance(marks, list):
        return any(_marked(mark) for mark in marks)
    return bool(marks)


def _element(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        # To Terraform an attribute that is absent and one that is null are the same.
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None if isinstance(step, str) else _MISSING


def _joined(path: str, steps: Sequence[str | int]) -> str:
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.replace("_", "").replace("-", "").isalnum():
            path += f".{step}" if path else step
        else:
            path += f"[{json.dumps(step)}]"
    return path


def within(path: str, outer: str) -> bool:
    """Whether `path` is `outer` or a part of it."""
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))
