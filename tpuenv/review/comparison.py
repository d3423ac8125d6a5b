"""Whether a plan was reviewed: it is compared with the recorded plan, and with what was applied of that.

Two things may be applied without another approval: a recorded plan that no apply has begun with, and what is left of
one after an apply of it that stopped before its end. Everything else is another change, even with the same
values: an update that was applied and then undone by hand is planned again value for value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tpuenv.review.changes import NOTHING, TAINTED, UNKNOWN, Change, Changes, Value, within
from tpuenv.review.records import Record


def unreviewed(record: Record | None, now: Changes, *, unfinished: bool) -> str:
    """Why the plan `now` needs an approval, or "" where it may be applied. `unfinished`: an apply of this record has
    begun and not ended, and nothing else of the stack was applied or destroyed since.
    """
    if record is None:
        return "there is no record of it"
    if record.not_plannable:
        return f"it was not plannable until {record.not_plannable}"
    if record.begun and not unfinished:
        return f"the plan on record (commit {record.commit}) was applied already, and this is another plan"
    lines = differences(reviewed=record.changes, now=now, partly_applied=record.begun)
    if not lines:
        return ""
    text = "".join(f"\n  {line}" for line in lines)
    if record.begun:
        return (
            f"an apply of the plan on record (commit {record.commit}) stopped before its end, and this is more than "
            f"what is left of it:{text}"
        )
    if changed_by_hand(reviewed=record.changes, now=now):
        return f"the cloud was changed since its review (commit {record.commit}), and this would put it back"
    return (
        f"it is not the plan on record (commit {record.commit}); since then the cloud has changed, or another commit "
        f"was deployed:{text}"
    )


def differences(*, reviewed: Changes, now: Changes, partly_applied: bool = False) -> list[str]:
    """What of `now` was not reviewed, a line each; none where an apply does only what was reviewed.

    What was reviewed and need not be done any more is no difference. Only a value that was not known at review cannot
    be compared. `partly_applied`: an apply stopped before its end; then the rest of an object's change counts as
    reviewed, and what was applied and then changed by hand does not.
    """
    before = {change.address: change for change in reviewed.resources}
    lines = [line for change in now.resources for line in _change_lines(before, change, partly_applied=partly_applied)]
    if partly_applied:
        drift = {change.address: change for change in now.drift}
        lines += [line for change in now.resources for line in _undone_lines(change, drift.get(change.address))]
    outputs = _value_lines(reviewed.outputs, now.outputs, whole=False, compare_before=True)
    return lines + [f"output {line}" for line in outputs]


def changed_by_hand(*, reviewed: Changes, now: Changes) -> bool:
    """Whether all that was not reviewed comes from changes outside of Terraform: then it is to be reviewed.

    That is so where there was nothing to do at review, or where Terraform reports drift of all objects that differ.
    """
    drifted = {change.address for change in now.drift}
    others = tuple(change for change in now.resources if change.address not in drifted)
    return reviewed.empty or not differences(reviewed=reviewed, now=replace(now, resources=others))


def _change_lines(reviewed: Mapping[str, Change], now: Change, *, partly_applied: bool) -> list[str]:
    owner, deposed, _ = now.address.partition(" (deposed ")
    then = reviewed.get(now.address)
    if (
        partly_applied
        and deposed
        and now.action == "delete"
        and owner in reviewed
        and reviewed[owner].action in _CREATING
    ):
        return []  # The old object, or a half-created one, when the creation was stopped.
    if then is None:
        return [] if now.action == "read" else [f"{now.address}: reviewed: nothing, now: {now.action}"]
    if now.imported not in ("", then.imported) or now.moved_from not in ("", then.moved_from):
        return [f"{now.address}: reviewed: {then.action}, now from {now.imported or now.moved_from}"]
    if partly_applied and _is_rest(then, now):
        lines = _value_lines(then.values, now.values, whole=True)
    elif then.action == now.action:
        lines = _value_lines(then.values, now.values, whole=now.action in ("create", "replace"), compare_before=True)
    else:
        return [f"{now.address}: reviewed: {then.action}, now: {now.action}"]
    return [f"{now.address}: {line}" for line in lines]


def _is_rest(then: Change, now: Change) -> bool:
    """Whether `now` is the rest of a creation: of a replacement the second half, or all of it again where the object is
    half created (tainted). A whole object is never changed because its creation was reviewed.
    """
    if now.action == "replace":
        return now.reason == TAINTED and then.action in _CREATING
    return now.action == "create" and then.action == "replace"


def _undone_lines(now: Change, drift: Change | None) -> Iterator[str]:
    """What is planned because somebody changed by hand what the state has.

    The state has what was applied; what was not applied yet differs from the state, not from the cloud alone.
    """
    if drift is None or now.action in ("delete", "forget", "read") or now.reason == TAINTED:
        return
    if drift.action == "delete":
        yield f"{now.address}: was deleted behind Terraform's back, now: {now.action}"
        return
    paths = [value.path for value in drift.values]
    for value in now.values:
        if value.before != value.after and any(within(value.path, path) or within(path, value.path) for path in paths):
            yield (
                f"{now.address}: {value.path}: was changed behind Terraform's back, now: {value.before} -> "
                f"{value.after}"
            )


def _value_lines(
    then: Sequence[Value], now: Sequence[Value], *, whole: bool, compare_before: bool = False
) -> Iterator[str]:
    """Values of `now` that were not reviewed; if `whole`, also reviewed values that the object would not get."""
    reviewed = {value.path: value for value in then}
    unknown = [value.path for value in then if value.after == UNKNOWN]
    for value in now:
        match = reviewed.get(value.path)
        if match is None:
            # The object was to be created without this value, and loses it now.
            expected = not compare_before and value.after in _NONE
            if not expected and not any(within(value.path, path) for path in unknown):
                yield f"{value.path}: reviewed: no change, now: {value.before} -> {value.after}"
        elif match.after not in (UNKNOWN, value.after) or (compare_before and match.before != value.before):
            yield f"{value.path}: reviewed: {match.before} -> {match.after}, now: {value.before} -> {value.after}"
    paths = {value.path for value in now}
    for value in then if whole else ():
        if value.after not in (UNKNOWN, *_NONE) and value.path not in paths:
            yield f"{value.path}: reviewed: {value.before} -> {value.after}, now: no change"


_NONE = ("null", NOTHING)
_CREATING = ("create", "replace")
