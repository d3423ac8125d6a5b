"""Whether what would happen now is what was reviewed: the differences between a recorded plan and one of now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cli.changes import NOTHING, TAINTED, UNKNOWN, Change, Changes, Value, within


def differences(*, reviewed: Changes, now: Changes) -> list[str]:
    """Lines that say what of `now` was not reviewed; none, if applying it does nothing that was not.

    What was reviewed and is no longer there to be done is fine: an earlier apply did it. Only a value that was not
    known at review cannot be compared.
    """
    before = {change.address: change for change in reviewed.resources}
    found = [line for change in now.resources for line in _of_change(before, change)]
    outputs = _unlike(reviewed.outputs, now.outputs, whole=False, before=True)
    return found + [f"output {line}" for line in outputs]


def by_hand(*, reviewed: Changes, now: Changes) -> bool:
    """Whether what was not reviewed is there only because somebody changed the cloud: it is to be reviewed then.

    So it is where nothing was left to do at review, or where Terraform found all that differs changed behind its back.
    """
    drifted = {change.address for change in now.drift}
    others = tuple(change for change in now.resources if change.address not in drifted)
    return reviewed.empty or not differences(reviewed=reviewed, now=replace(now, resources=others))


def _of_change(reviewed: Mapping[str, Change], now: Change) -> list[str]:
    owner, deposed, _ = now.address.partition(" (deposed ")
    then = reviewed.get(now.address)
    if deposed and now.action == "delete" and owner in reviewed and reviewed[owner].action == "replace":
        return []  # The old object of a replacement that was stopped before its end.
    if then is None:
        return [] if now.action == "read" else [f"{now.address}: reviewed: nothing, now: {now.action}"]
    if now.imported not in ("", then.imported) or now.moved_from not in ("", then.moved_from):
        return [f"{now.address}: reviewed: {then.action}, now from {now.imported or now.moved_from}"]
    if _is_rest(then, now):
        lines = _unlike(then.values, now.values, whole=False)
    elif then.action == now.action:
        lines = _unlike(then.values, now.values, whole=now.action in ("create", "replace"), before=True)
    else:
        return [f"{now.address}: reviewed: {then.action}, now: {now.action}"]
    return [f"{now.address}: {line}" for line in lines]


def _is_rest(then: Change, now: Change) -> bool:
    """Whether `now` is what is left of making an object, which was reviewed and then stopped half-way.

    Such an object is either there, and may still need a change, or is half made, and is made again.
    """
    if then.action not in ("create", "replace"):
        return False
    if now.action == "replace":
        return now.reason == TAINTED != then.reason
    return now.action in ("create", "change") and now.action != then.action


def _unlike(then: Sequence[Value], now: Sequence[Value], *, whole: bool, before: bool = False) -> Iterator[str]:
    """Values of now that were not reviewed; if `whole`, also those reviewed that are missing now."""
    reviewed = {value.path: value for value in then}
    unknown = [value.path for value in then if value.after == UNKNOWN]
    for value in now:
        match = reviewed.get(value.path)
        if match is None:
            # What was to be made without this value is to have it no more.
            of_no_account = not before and value.after in ("null", NOTHING)
            if not of_no_account and not any(within(value.path, path) for path in unknown):
                yield f"{value.path}: reviewed: no change, now: {value.before} -> {value.after}"
        elif match.after not in (UNKNOWN, value.after) or (before and match.before != value.before):
            yield f"{value.path}: reviewed: {match.before} -> {match.after}, now: {value.before} -> {value.after}"
    paths = {value.path for value in now}
    for value in then if whole else ():
        if value.after != UNKNOWN and value.path not in paths:
            yield f"{value.path}: reviewed: {value.before} -> {value.after}, now: no change"
