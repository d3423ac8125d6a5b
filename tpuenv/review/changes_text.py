"""Changes of a plan as lines for people."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Sequence

from tpuenv.review.changes import NOTHING, UNKNOWN, Change, Changes, Value
from tpuenv.review.masking import SENSITIVE

_WORDS = {"change": "change in place"}

# The Google provider copies these from `labels` and its own settings; of a new object they say nothing.
_COPIES = ("effective_labels", "terraform_labels")
_LONG = 160


def heading(changes: Changes) -> str:
    """ "2 to create, 1 to change in place", or "no changes"."""
    if changes.empty:
        return "no changes"
    counts = Counter(change.action for change in changes.resources if change.action != "read")
    words = [f"{count} to {_WORDS.get(action, action)}" for action, count in counts.items()]
    if changes.outputs:
        words.append(f"{len(changes.outputs)} output values to change")
    return ", ".join(words)


def lines(changes: Changes) -> Iterator[str]:
    """The drift, what would happen to every object, and every value that changes."""
    for change in changes.drift:
        values = [value for value in change.values if not _same_nothing(value)]
        if values or change.action == "delete":
            what = "was deleted" if change.action == "delete" else "was changed"
            yield f"  drift: {change.address} {what} behind Terraform's back"
            yield from _value_lines(values)
    for change in changes.resources:
        yield f"  {_WORDS.get(change.action, change.action)}: {change.address}{_why(change)}"
        created = change.action in ("create", "read")
        yield from _created_lines(change.values) if created else _value_lines(change.values)
    if changes.outputs:
        yield "  outputs:"
        yield from _value_lines(changes.outputs)


def _why(change: Change) -> str:
    why = [f"from {change.imported}"] if change.imported else []
    why += [f"was {change.moved_from}"] if change.moved_from else []
    why += [change.reason] if change.reason else []
    return f" ({'; '.join(why)})" if why else ""


def _value_lines(values: Sequence[Value]) -> Iterator[str]:
    for value in (value for value in values if value.before != value.after):
        forces = "   # forces replacement" if value.replaces else ""
        if several := _several_lines(value):
            yield f"      {value.path}:{forces}"
            yield from (f"        {line}" for line in several)
        else:
            yield f"      {value.path}: {_shown(value.before)} -> {_shown(value.after, value.before)}{forces}"


def _created_lines(values: Sequence[Value]) -> Iterator[str]:
    for value in values:
        if value.after in (UNKNOWN, NOTHING, "null", "[]", "{}") or value.path.startswith(_COPIES):
            continue
        after = _shown(value.after)
        yield f"      {value.path}: {after if len(after) <= _LONG else after[:_LONG] + '...'}"


def _shown(text: str, before: str = "") -> str:
    """A sensitive value without its digest, which only the comparison needs."""
    if not text.startswith(SENSITIVE):
        return text
    return "(sensitive value, another)" if before.startswith(SENSITIVE) else "(sensitive value)"


def _several_lines(value: Value) -> list[str]:
    """The lines that differ, where both are texts of several lines."""
    texts = [json.loads(text) for text in (value.before, value.after) if text.startswith('"')]
    if len(texts) != 2 or not any("\n" in text for text in texts):
        return []
    before, after = (text.splitlines() for text in texts)
    differing = difflib.unified_diff(before, after, n=1, lineterm="")
    return list(differing)[2:]


def _same_nothing(value: Value) -> bool:
    """Providers write null for an empty list, and the other way round; that is no drift."""
    nothing = (NOTHING, "null", "[]", "{}", '""', "false", "0")
    return value.before in nothing and value.after in nothing
