"""Whether what would happen now was reviewed: a recorded plan, what became of it, and a plan of now.

Two things may be applied without another approval: a recorded plan that no apply has begun with, and what is left of
one after an apply of it that stopped before its end. Everything else is another change, though it may look the same:
an update that was applied and put back by hand is planned again value for value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tpuenv.review.changes import NOTHING, TAINTED, UNKNOWN, Change, Changes, Value, within
from tpuenv.review.records import Record


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Apply the plan if both are empty; else show it, record it and ask for approval; or refuse it, line by line."""

    ask: str = ""
    refuse: tuple[str, ...] = ()


def verdict(record: Record | None, now: Changes, *, unfinished: bool) -> Verdict:
    """`unfinished`: an apply of this record has begun, and nothing else of the stack was applied or destroyed since."""
    if record is None:
        return Verdict(ask="there is no record of it")
    if record.not_plannable:
        return Verdict(ask=f"it was not plannable until {record.not_plannable}")
    if record.begun and not unfinished:
        return Verdict(ask=f"the plan on record (commit {record.commit}) was applied already, and this is another plan")
    found = differences(reviewed=record.changes, now=now, half_done=record.begun)
    if not found:
        return Verdict()
    if record.begun:
        lines = "".join(f"\n  {line}" for line in found)
        return Verdict(
            ask=f"an apply of the plan on record (commit {record.commit}) stopped before its end, and this is more "
            f"than what is left of it:{lines}\n"
        )
    if by_hand(reviewed=record.changes, now=now):
        return Verdict(
            ask=f"the cloud was changed since its review (commit {record.commit}), and this would put it back"
        )
    return Verdict(refuse=tuple(found))


def differences(*, reviewed: Changes, now: Changes, half_done: bool = False) -> list[str]:
    """Lines that say what of `now` was not reviewed; none, if applying it does nothing that was not.

    What was reviewed and is no longer there to be done is fine. Only a value that was not known at review cannot be
    compared. `half_done`: an apply stopped before its end; then what is left of an object counts as reviewed, and what
    was done and undone does not.
    """
    before = {change.address: change for change in reviewed.resources}
    found = [line for change in now.resources for line in _of_change(before, change, half_done=half_done)]
    if half_done:
        drift = {change.address: change for change in now.drift}
        found += [line for change in now.resources for line in _undone(change, drift.get(change.address))]
    outputs = _unlike(reviewed.outputs, now.outputs, whole=False, before=True)
    return found + [f"output {line}" for line in outputs]


def by_hand(*, reviewed: Changes, now: Changes) -> bool:
    """Whether what was not reviewed is there only because somebody changed the cloud: it is to be reviewed then.

    So it is where nothing was left to do at review, or where Terraform found all that differs changed behind its back.
    """
    drifted = {change.address for change in now.drift}
    others = tuple(change for change in now.resources if change.address not in drifted)
    return reviewed.empty or not differences(reviewed=reviewed, now=replace(now, resources=others))


def _of_change(reviewed: Mapping[str, Change], now: Change, *, half_done: bool) -> list[str]:
    owner, deposed, _ = now.address.partition(" (deposed ")
    then = reviewed.get(now.address)
    if half_done and deposed and now.action == "delete" and owner in reviewed and reviewed[owner].action in _MAKING:
        return []  # What was there before, or half made, when making it was stopped.
    if then is None:
        return [] if now.action == "read" else [f"{now.address}: reviewed: nothing, now: {now.action}"]
    if now.imported not in ("", then.imported) or now.moved_from not in ("", then.moved_from):
        return [f"{now.address}: reviewed: {then.action}, now from {now.imported or now.moved_from}"]
    if half_done and _is_rest(then, now):
        lines = _unlike(then.values, now.values, whole=True)
    elif then.action == now.action:
        lines = _unlike(then.values, now.values, whole=now.action in ("create", "replace"), before=True)
    else:
        return [f"{now.address}: reviewed: {then.action}, now: {now.action}"]
    return [f"{now.address}: {line}" for line in lines]


def _is_rest(then: Change, now: Change) -> bool:
    """Whether `now` is what is left of making an object: of a replacement its second half, or all of it again where
    the object is half made. An object that is whole is never changed in the name of its creation.
    """
    if now.action == "replace":
        return now.reason == TAINTED and then.action in _MAKING
    return now.action == "create" and then.action == "replace"


def _undone(now: Change, drift: Change | None) -> Iterator[str]:
    """Lines for what is planned because somebody changed by hand what the state has.

    The state has what an apply has done; what it has not done yet differs from the state, not from the cloud alone.
    """
    if drift is None or now.action in ("delete", "forget", "read") or now.reason == TAINTED:
        return
    if drift.action == "delete":
        yield f"{now.address}: was deleted behind Terraform's back, now: {now.action}"
        return
    paths = [value.path for value in drift.values]
    for value in now.values:
        if value.before != value.after and any(within(value.path, each) or within(each, value.path) for each in paths):
            yield (
                f"{now.address}: {value.path}: was changed behind Terraform's back, now: {value.before} -> "
                f"{value.after}"
            )


def _unlike(then: Sequence[Value], now: Sequence[Value], *, whole: bool, before: bool = False) -> Iterator[str]:
    """Values of now that were not reviewed; if `whole`, also those that an object was to have and would not."""
    reviewed = {value.path: value for value in then}
    unknown = [value.path for value in then if value.after == UNKNOWN]
    for value in now:
        match = reviewed.get(value.path)
        if match is None:
            # What was to be made without this value is to have it no more.
            of_no_account = not before and value.after in _NONE
            if not of_no_account and not any(within(value.path, path) for path in unknown):
                yield f"{value.path}: reviewed: no change, now: {value.before} -> {value.after}"
        elif match.after not in (UNKNOWN, value.after) or (before and match.before != value.before):
            yield f"{value.path}: reviewed: {match.before} -> {match.after}, now: {value.before} -> {value.after}"
    paths = {value.path for value in now}
    for value in then if whole else ():
        if value.after not in (UNKNOWN, *_NONE) and value.path not in paths:
            yield f"{value.path}: reviewed: {value.before} -> {value.after}, now: no change"


_NONE = ("null", NOTHING)
_MAKING = ("create", "replace")
