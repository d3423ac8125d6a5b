"""Plan a change as an honest provider does: keep what is kept, mark as unknown what the cloud will decide, say what
forces replacement.

Source: "Resource Instance Change Lifecycle" in hashicorp/terraform, docs/resource-instance-change-lifecycle.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rehearsal.schemas import Block
from rehearsal.values import UNKNOWN, Unknown, Value, empty

Path = tuple[Any, ...]


def fill_unknown(block: Block, proposed: dict[str, Value], prior: dict[str, Value] | None) -> dict[str, Value]:
    """`proposed` with every computed attribute that has no value yet marked as unknown.

    Terraform proposes the configuration with prior values in place of computed ones; so what is null and computed is
    new unless the thing existed before (then the cloud had decided on null).
    """
    out = dict(proposed)
    if prior is None:
        for name, attribute in block.attributes.items():
            if attribute.computed and out.get(name) is None:
                out[name] = UNKNOWN
    for name, nested in block.blocks.items():
        value, before = proposed.get(name), None if prior is None else prior.get(name)
        if isinstance(value, Unknown) or value is None:
            continue
        if nested.nesting == "single":
            out[name] = fill_unknown(nested.block, value, before)
        elif nested.nesting == "map":
            out[name] = {key: fill_unknown(nested.block, item, (before or {}).get(key)) for key, item in value.items()}
        elif nested.nesting == "list":
            old = before or []
            out[name] = [
                fill_unknown(nested.block, item, old[at] if at < len(old) else None) for at, item in enumerate(value)
            ]
        else:
            old = before or []
            out[name] = [item if item in old else fill_unknown(nested.block, item, None) for item in value]
    return out


def settle(block: Block, planned: dict[str, Value]) -> dict[str, Value]:
    """`planned` with a plain value for whatever is still unknown after the rules have had their say."""
    out = dict(planned)
    for name, attribute in block.attributes.items():
        if isinstance(out.get(name), Unknown):
            out[name] = empty(attribute.type_)
    for name, nested in block.blocks.items():
        value = out.get(name)
        if nested.nesting == "single" and value is not None:
            out[name] = settle(nested.block, value)
        elif isinstance(value, dict):
            out[name] = {key: settle(nested.block, item) for key, item in value.items()}
        elif isinstance(value, list):
            out[name] = [settle(nested.block, item) for item in value]
    return out


def overlay(planned: dict[str, Value], decided: dict[str, Value]) -> dict[str, Value]:
    """`planned` with unknown values replaced by those `decided`, also inside blocks; what is known stays as it is."""
    out = dict(planned)
    for name, value in decided.items():
        there = out.get(name)
        if isinstance(there, Unknown) and value is not None:
            out[name] = value
        elif isinstance(there, dict) and isinstance(value, dict):
            out[name] = overlay(there, value)
        elif isinstance(there, list) and isinstance(value, list):
            pairs = zip(there, value, strict=False)
            merged = [
                overlay(old, new) if isinstance(old, dict) and isinstance(new, dict) else old for old, new in pairs
            ]
            out[name] = merged + there[len(merged) :]
    return out


def same(block: Block, left: dict[str, Value], right: dict[str, Value]) -> bool:
    """Whether two values of a block are equal; the order in sets does not matter."""
    return bool(_canonical(block, left) == _canonical(block, right))


def _canonical(block: Block, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    out = {}
    for name, attribute in block.attributes.items():
        item = value.get(name)
        is_set = isinstance(attribute.type_, list) and attribute.type_[0] == "set"
        out[name] = sorted(item, key=repr) if is_set and isinstance(item, list) else item
    for name, nested in block.blocks.items():
        item = value.get(name)
        if isinstance(item, list):
            parts = [_canonical(nested.block, part) for part in item]
            item = sorted(parts, key=repr) if nested.nesting == "set" else parts
        elif isinstance(item, dict) and nested.nesting == "map":
            item = {key: _canonical(nested.block, part) for key, part in item.items()}
        elif isinstance(item, dict):
            item = _canonical(nested.block, item)
        out[name] = item
    return out


def replacements(
    block: Block, prior: dict[str, Value], planned: dict[str, Value], immutable: tuple[str, ...]
) -> list[Path]:
    """The paths under `immutable` ("network", "node_config.machine_type") whose value changes.

    A path that goes through a list of blocks is meant for every item, and through a set for the set as a whole.
    """
    found: list[Path] = []
    for dotted in immutable:
        for path, old, new in _both(block, prior, planned, dotted.split("."), ()):
            if not _equal(old, new) and path not in found:
                found.append(path)
    return found


def _both(block: Block, prior: Any, planned: Any, names: list[str], path: Path) -> Iterator[tuple[Path, Value, Value]]:
    old = prior.get(names[0]) if isinstance(prior, dict) else None
    new = planned.get(names[0]) if isinstance(planned, dict) else None
    here = (*path, names[0])
    nested = block.blocks.get(names[0])
    if nested is None or len(names) == 1 or nested.nesting in ("set", "map"):
        yield here, old, new
    elif nested.nesting == "single":
        yield from _both(nested.block, old, new, names[1:], here)
    else:
        before, after = old or [], new if isinstance(new, list) else []
        if len(before) != len(after) and not (before and after):
            # A block that comes or goes changes what is in it; the paths inside do not exist on both sides.
            yield here, _only(before, names[1:]), _only(after, names[1:])
            return
        for at, (was, will) in enumerate(zip(before, after, strict=False)):
            yield from _both(nested.block, was, will, names[1:], (*here, at))


def _only(items: list[Value], names: list[str]) -> list[Value]:
    """The values under `names` in the items, without nothing: an empty block that comes or goes forces nothing."""
    out = items
    for name in names:
        out = [value for item in out if isinstance(item, dict) for value in _as_list(item.get(name))]
    return out


def _as_list(value: Value) -> list[Value]:
    if isinstance(value, list):
        return value
    return [] if value is None or value == "" or value is False else [value]


def _equal(left: Value, right: Value) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return sorted(map(repr, left)) == sorted(map(repr, right))
    return bool(left == right)
