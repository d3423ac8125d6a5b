"""What was not reviewed is not applied; what is left of something reviewed is."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.plans import ADDRESS, changed, plan
from tpuenv.failure import Failed
from tpuenv.main import main
from tpuenv.review.changes import Change, Changes, read
from tpuenv.review.comparison import changed_by_hand, differences, unreviewed
from tpuenv.review.records import Record, RecordFolder, parse

NEW = {"name": "a", "size": 1, "labels": {"team": "x"}}
HALF_MADE = {"action_reason": "replace_because_tainted", "actions": ("delete", "create")}
IN_PLACE_IMPOSSIBLE = {"action_reason": "replace_because_cannot_update", "actions": ("delete", "create")}


def of(before: Any, after: Any, **more: Any) -> Changes:
    return read(plan(changed(before, after, **more)), salt="salt")


def create(after: Any, **more: Any) -> Changes:
    return of(None, after, actions=("create",), **more)


values = st.dictionaries(
    st.sampled_from("abcd"),
    st.none() | st.integers(0, 2) | st.lists(st.integers(0, 2), max_size=2) | st.text("xy", max_size=2),
    max_size=4,
)
actions = st.sampled_from([("create",), ("update",), ("delete",), ("delete", "create"), ("read",)])


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    resources = []
    for number in range(draw(st.integers(0, 3))):
        action = draw(actions)
        before = None if action in (("create",), ("read",)) else draw(values)
        after = None if action == ("delete",) else draw(values)
        unknown = {"id": True} if draw(st.booleans()) and after is not None else False
        resources.append(
            changed(before, after, actions=action, address=f"google_thing.n{number}", after_unknown=unknown)
        )
    output = {"actions": ["update"], "before": draw(values), "after": draw(values), "after_unknown": False}
    return plan(*resources, out=output)


@given(plans())
def test_a_plan_is_what_was_reviewed_when_it_is_the_same(body: dict[str, Any]) -> None:
    random.Random(1).shuffle(body["resource_changes"])
    changes = read(body, salt="salt")
    assert differences(reviewed=changes, now=read(body, salt="salt")) == []


@given(plans(), st.booleans())
def test_a_record_gives_back_what_was_recorded(body: dict[str, Any], begun: bool) -> None:
    record = Record(stack="s", commit="c", digest="d", terraform="1.11.4", changes=read(body, salt="salt"), begun=begun)
    assert parse(record.text, place="here") == record
    assert parse(record.text, place="here").text == record.text


@given(plans())
def test_what_was_done_already_is_no_difference(body: dict[str, Any]) -> None:
    assert differences(reviewed=read(body, salt="salt"), now=Changes()) == []


@given(plans())
def test_all_that_was_not_reviewed_is_reported(body: dict[str, Any]) -> None:
    changes = read(body, salt="salt")
    lines = differences(reviewed=Changes(), now=changes)
    for change in changes.resources:
        assert change.action == "read" or any(line.startswith(f"{change.address}: ") for line in lines)
    assert len([line for line in lines if line.startswith("output ")]) == len(changes.outputs)


@given(values, values, values)
def test_every_other_value_is_reported(before: Any, reviewed: Any, now: Any) -> None:
    for action in (("create",), ("update",), ("delete", "create")):
        start = None if action == ("create",) else before
        then, new = of(start, reviewed, actions=action), of(start, now, actions=action)
        assume(then != new)
        # A change of one object may have been done in part; of an object that is replaced all must be as reviewed.
        done_in_part = action == ("update",) and set(new.resources[0].values) <= set(then.resources[0].values)
        assert done_in_part or differences(reviewed=then, now=new)


@pytest.mark.parametrize(
    ("then", "now", "line_text"),
    [
        (create(NEW), create({**NEW, "size": 2}), "size: reviewed: null -> 1, now: null -> 2"),
        (create(NEW), create({"name": "a", "size": 1}), 'labels.team: reviewed: null -> "x", now: no change'),
        (create(NEW), create({**NEW, "open": True}), "open: reviewed: no change, now: null -> true"),
        (create(NEW), of(NEW, None, actions=("delete",)), "reviewed: create, now: delete"),
        (of(NEW, {**NEW, "size": 2}), of(NEW, {**NEW, "size": 2}, **IN_PLACE_IMPOSSIBLE), "change, now: replace"),
        (of(NEW, {**NEW, "size": 2}), of({**NEW, "size": 7}, {**NEW, "size": 2}), "1 -> 2, now: 7 -> 2"),
        (of(NEW, {**NEW, "size": 2}), of(NEW, NEW, **HALF_MADE), "reviewed: change, now: replace"),
        (create(NEW), of(NEW, {**NEW, "size": 3}), "reviewed: create, now: change"),
        (create(NEW), of(NEW, {**NEW, "size": 3}, **HALF_MADE), "reviewed: create, now: replace"),
        (create(NEW), of(NEW, NEW, **IN_PLACE_IMPOSSIBLE), "reviewed: create, now: replace"),
        (create(NEW), create(NEW, after_unknown={"size": True}), "size: reviewed: null -> 1, now: null -> (known"),
        (create(NEW), create(NEW, importing={"id": "x"}), "reviewed: create, now from x"),
        (of(NEW, NEW, **HALF_MADE), of({**NEW, "size": 9}, NEW, **HALF_MADE), "size: reviewed: 1 -> 1, now: 9 -> 1"),
        (create(NEW), of(NEW, None, actions=("delete",), deposed="1a2b"), "reviewed: nothing, now: delete"),
    ],
)  # fmt: skip
def test_a_difference_is_reported(then: Changes, now: Changes, line_text: str) -> None:
    lines = differences(reviewed=then, now=now)
    assert lines
    assert all(line.startswith(ADDRESS) for line in lines)
    assert line_text in "\n".join(lines)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        # What it waited for has been made meanwhile.
        (create({"name": "a"}, after_unknown={"net": True}), create({"name": "a", "net": "n/1"})),
        (create({}, after_unknown={"net": True}), create({"net": [{"id": "n/1"}]})),
        # A stop in the middle of a change.
        (of(NEW, {**NEW, "size": 2, "name": "b"}), of({**NEW, "name": "b"}, {**NEW, "size": 2, "name": "b"})),
    ],
)
@pytest.mark.parametrize("partly_applied", [False, True])
def test_a_part_of_what_was_reviewed_was_reviewed(then: Changes, now: Changes, partly_applied: bool) -> None:
    assert differences(reviewed=then, now=now, partly_applied=partly_applied) == []


@pytest.mark.parametrize(
    ("then", "now"),
    [
        # Half made, or not made again yet.
        (create(NEW), of({"name": "a"}, NEW, **HALF_MADE)),
        (of({"name": "b"}, NEW, **IN_PLACE_IMPOSSIBLE), create(NEW)),
        (of({**NEW, "name": "b", "extra": 1}, NEW, **IN_PLACE_IMPOSSIBLE), create(NEW)),
        (of({"name": "b"}, NEW, **IN_PLACE_IMPOSSIBLE), of({"name": "a"}, NEW, **HALF_MADE)),
        (of(NEW, NEW, **HALF_MADE), of({**NEW, "size": 9}, NEW, **HALF_MADE)),
        # The old object of a replacement.
        (
            of({"name": "b"}, NEW, actions=("create", "delete")),
            of({"name": "b"}, None, actions=("delete",), deposed="1a2b"),
        ),
    ],
)
def test_what_is_left_of_making_an_object_was_reviewed_only_while_its_apply_is_unfinished(
    then: Changes, now: Changes
) -> None:
    assert differences(reviewed=then, now=now, partly_applied=True) == []
    assert differences(reviewed=then, now=now)


@pytest.mark.parametrize(
    ("then", "now", "line_text"),
    [
        (create(NEW), of(NEW, {**NEW, "size": 3}, **HALF_MADE), "size: reviewed: null -> 1, now: 1 -> 3"),
        (
            of({"name": "b"}, NEW, **IN_PLACE_IMPOSSIBLE),
            create({"name": "a", "size": 1}),
            'labels.team: reviewed: null -> "x", now: no change',
        ),
    ],
)
def test_an_object_is_made_to_its_end_as_reviewed_or_not_at_all(then: Changes, now: Changes, line_text: str) -> None:
    assert differences(reviewed=then, now=now, partly_applied=True) == [f"{ADDRESS}: {line_text}"]


@pytest.mark.parametrize("whose", [create(NEW), of({**NEW, "name": "b"}, NEW, **IN_PLACE_IMPOSSIBLE)])
def test_an_object_that_is_whole_is_not_changed_in_the_name_of_its_creation(whose: Changes) -> None:
    """As after a change by hand, or where the cloud chose other defaults, of an object that an apply has made."""
    for before in ({**NEW, "size": 9}, {"name": "a", "extra": 1}):
        lines = differences(reviewed=whose, now=of(before, NEW), partly_applied=True)
        assert lines == [f"{ADDRESS}: reviewed: {whose.resources[0].action}, now: change"]


@pytest.mark.parametrize(
    ("then", "now", "line_text"),
    [
        # Done by an apply, then undone by hand: planned again, value for value.
        (
            of({"size": 1}, {"size": 2}),
            plan(changed({"size": 1}, {"size": 2}), drift=(changed({"size": 2}, {"size": 1}),)),
            "size: was changed behind Terraform's back, now: 1 -> 2",
        ),
        (
            of({"block": [{"size": 1}]}, {"block": [{"size": 2}]}),
            plan(
                changed({"block": [{"size": 1}]}, {"block": [{"size": 2}]}),
                drift=(changed({"block": []}, {"block": [{"size": 1}]}),),
            ),
            "block[0].size: was changed behind Terraform's back",
        ),
        (
            create(NEW),
            plan(changed(None, NEW, actions=("create",)), drift=(changed(NEW, None, actions=("delete",)),)),
            "was deleted behind Terraform's back, now: create",
        ),
        (
            of({"name": "b"}, {"name": "a"}, **IN_PLACE_IMPOSSIBLE),
            plan(
                changed({"name": "b"}, {"name": "a"}, **IN_PLACE_IMPOSSIBLE),
                drift=(changed({"name": "a"}, {"name": "b"}),),
            ),
            "name: was changed behind Terraform's back",
        ),
    ],
)
def test_what_was_done_and_undone_by_hand_is_not_what_is_left(
    then: Changes, now: dict[str, Any], line_text: str
) -> None:
    (line,) = differences(reviewed=then, now=read(now, salt="salt"), partly_applied=True)
    assert line.startswith(ADDRESS)
    assert line_text in line


def test_drift_of_what_is_not_planned_does_not_keep_the_rest_from_being_applied() -> None:
    then = of({"size": 1, "seen": 1}, {"size": 2, "seen": 1})
    now = plan(changed({"size": 1, "seen": 7}, {"size": 2, "seen": 7}), drift=(changed({"seen": 1}, {"seen": 7}),))
    assert differences(reviewed=then, now=read(now, salt="salt"), partly_applied=True) == []


def test_a_record_is_good_for_one_apply_and_for_what_is_left_of_it() -> None:
    change = of({"size": 1}, {"size": 2})
    fresh = Record(stack="s", commit="c", digest="d", terraform="1", changes=change)
    begun = replace(fresh, begun=True)
    assert unreviewed(fresh, change, unfinished=False) == ""
    assert unreviewed(begun, change, unfinished=True) == ""
    assert "(commit c) was applied already" in unreviewed(begun, change, unfinished=False)


def test_more_than_what_is_left_after_a_stop_is_asked_for_and_says_what() -> None:
    record = Record(stack="s", commit="c", digest="d", terraform="1", changes=create(NEW), begun=True)
    why = unreviewed(record, of({**NEW, "size": 9}, NEW), unfinished=True)
    assert f"stopped before its end, and this is more than what is left of it:\n  {ADDRESS}: reviewed: create" in why


OTHER = "google_thing.other"


def found_changed(*drifted: dict[str, Any]) -> Changes:
    """A plan that restores one object and, with `drifted`, reports what changed outside of Terraform."""
    back = changed({"size": 9}, {"size": 4}, address=OTHER)
    return read(plan(back, drift=drifted), salt="salt")


def test_what_somebody_changed_by_hand_since_is_still_to_be_reviewed() -> None:
    drifted = changed({"size": 4}, {"size": 9}, address=OTHER)
    assert changed_by_hand(reviewed=create(NEW), now=found_changed(drifted))
    assert changed_by_hand(reviewed=Changes(), now=found_changed()), "nothing was left to do at review"


def test_what_differs_for_another_reason_is_not_taken_for_drift() -> None:
    elsewhere = changed({"size": 4}, {"size": 9}, address="google_thing.third")
    assert not changed_by_hand(reviewed=create(NEW), now=found_changed())
    assert not changed_by_hand(reviewed=create(NEW), now=found_changed(elsewhere))
    drifted = changed({"size": 4}, {"size": 9}, address=OTHER)
    both = read(plan(changed({"size": 9}, {"size": 4}, address=OTHER), changed(NEW, None, actions=("delete",)),
                     drift=(drifted,)), salt="salt")  # fmt: skip
    assert not changed_by_hand(reviewed=create(NEW), now=both)


def test_another_sensitive_value_is_reported_without_showing_it() -> None:
    then, now = (create({"key": secret}, after_sensitive={"key": True}) for secret in ("hush", "other"))
    (line,) = differences(reviewed=then, now=now)
    assert line.startswith(f"{ADDRESS}: key: reviewed: null -> (sensitive value")
    assert "hush" not in line
    assert "other" not in line


@pytest.mark.parametrize(
    ("text", "line_text"),
    [
        ("", "not a record"),
        ("[]", "not a record"),
        ('{"version": 2}', "version 2"),
        ('{"version": 1}', "not a record"),
        ('{"version": 1, "resources": [{"values": 3}], "outputs": []}', "not a record"),
    ],
)
def test_a_record_that_is_none_is_reported_with_its_place(tmp_path: Path, text: str, line_text: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "s.json").write_text(text)
    with pytest.raises(Failed, match=rf"s\.json: .*{line_text}"):
        RecordFolder(folder=tmp_path).read("d", "s")


def test_a_record_of_an_older_version_is_one_that_no_apply_has_begun() -> None:
    record = Record(stack="s", commit="c", digest="d", terraform="1", changes=create(NEW))
    body = json.loads(record.text)
    del body["begun"]
    assert parse(json.dumps(body), place="here") == record


def test_a_record_takes_the_place_of_an_older_one_whole(tmp_path: Path) -> None:
    kept = RecordFolder(folder=tmp_path / "new")
    assert kept.read("d", "s") is None
    for commit in ("one", "two"):
        resource = Change(address="a.b", action="delete")
        kept.write(Record(stack="s", commit=commit, digest="d", terraform="1", changes=Changes(resources=(resource,))))
    record = kept.read("d", "s")
    assert record is not None
    assert (record.commit, record.changes.resources) == ("two", (resource,))
    assert [path.name for path in (tmp_path / "new" / "d").iterdir()] == ["s.json"]


def test_a_folder_of_records_that_is_not_there_is_refused_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROJECT_ID", "some-project")
    assert main(["apply", "--reviewed", str(tmp_path / "typo")]) == 2
    assert f"--reviewed: '{tmp_path / 'typo'}' is no folder here" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
