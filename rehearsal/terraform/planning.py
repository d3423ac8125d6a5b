"""Plan a change as an honest provider does: keep what is kept, mark as unknown what the cloud will decide, say what
forces replacement.

Source: "Resource Instance Change Lifecycle" in hashicorp/terraform, docs/resource-instance-change-lifecycle.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from rehearsal.terraform.schemas import Block
from rehearsal.terraform.values import UNKNOWN, Unknown, Value, empty

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
    """`planned` with a plain value for whatever is still unknown after the rules."""
    out = dict(planned)
    for name, attribute in block.attributes.items():
        if isinstance(out.get(name), Unknown):
            out[name] = empty(attribute.type_)
    for name, nested in block.blocks.items():
        value = out.get(name)
        if isinstance(value, Unknown) or name not in out:
            out[name] = None if nested.nesting == "single" else []
        elif nested.nesting == "single" and value is not None:
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
    block: Block,
    prior: dict[str, Value],
    planned: dict[str, Value],
    *,
    leaves: Iterable[str],
    counts: Iterable[str] = (),
) -> list[Path]:
    """The paths that force replacement: under `leaves` ("network", "node_config.spot") where a value changes, and
    under `counts` where the number of blocks does.

    A path that goes through a list of blocks is meant for every item, and through a set for the set as a whole.
    """
    paths = [
        path
        for dotted in leaves
        for path, old, new in _pairs(block, prior, planned, dotted.split("."), ())
        if _differs(old, new)
    ]
    paths += [
        path
        for dotted in counts
        for path, old, new in _pairs(block, prior, planned, dotted.split("."), ())
        if isinstance(new, Unknown) or len(old or ()) != len(new or ())
    ]
    return list(dict.fromkeys(paths))


def without(
    block: Block, prior: dict[str, Value], planned: dict[str, Value], paths: Iterable[str]
) -> tuple[dict[str, Value], list[Path]]:
    """`planned` with what it was in `prior` under `paths`, and where that is another value."""
    out, places = planned, []
    for dotted in paths:
        for place, old, new in _pairs(block, prior, planned, dotted.split("."), ()):
            if _differs(old, new):
                out = _replaced(out, place, old)
                places.append(place)
    return out, places


def _replaced(value: Any, place: Path, new: Value) -> Any:
    if not place:
        return new
    step, *rest = place
    out = dict(value) if isinstance(value, dict) else list(value)
    out[step] = _replaced(value[step], tuple(rest), new)
    return out


def _pairs(block: Block, prior: Any, planned: Any, names: list[str], path: Path) -> Iterator[tuple[Path, Value, Value]]:
    """Before and after, wherever `names` lead to on one of both sides."""
    old = prior.get(names[0]) if isinstance(prior, dict) else None
    new = planned.get(names[0]) if isinstance(planned, dict) else None
    here = (*path, names[0])
    nested = block.blocks.get(names[0])
    inner = nested.block if nested is not None else Block()
    if len(names) == 1 or isinstance(new, Unknown):
        attribute = block.attributes.get(names[0])
        is_set = attribute is not None and isinstance(attribute.type_, list) and attribute.type_[0] == "set"
        yield here, _sorted(old) if is_set else old, _sorted(new) if is_set else new
    elif nested is not None and nested.nesting == "single":
        yield from _pairs(inner, old, new, names[1:], here)
    elif nested is not None and nested.nesting == "set":
        # A member with another value is another member, with all that is in it.
        before, after = old or [], new or []
        gone = [member for member in before if member not in after]
        new_members = [member for member in after if member not in before]
        yield here, _inside(gone, names[1:]), _inside(new_members, names[1:])
    else:
        for at, (was, will) in enumerate(itertools.zip_longest(old or [], new or [])):
            yield from _pairs(inner, was, will, names[1:], (*here, at))


def _sorted(value: Value) -> Value:
    return sorted(value, key=repr) if isinstance(value, list) else value


def _inside(items: list[Value], names: list[str]) -> list[Value]:
    """The values under `names` in the items."""
    out = items
    for name in names:
        values = [item.get(name) for item in out if isinstance(item, dict)]
        out = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [value for value in out if value is not None]


def _differs(old: Value, new: Value) -> bool:
    """As the SDK sees it: what nobody sets any more is no change where it was empty; 0 and false are values."""
    if new is None:
        return old not in (None, "", 0, False, [], {})
    if old is None:
        return new not in ("", [], {})
    return bool(old != new)
