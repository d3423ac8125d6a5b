"""What a plan would do is read whole: every value that changes is shown, and no sensitive one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.plans import ADDRESS, changed, plan
from tpuenv.review.changes import UNKNOWN, Changes, read
from tpuenv.review.changes_text import heading, lines

SALT = "salt"

scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2, width=16) | st.text(max_size=4)
names = st.text("abc-_./ é", min_size=1, max_size=3)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
objects = st.dictionaries(names, values, min_size=1, max_size=3)


def shown(changes: Changes) -> str:
    return "\n".join(lines(changes))


def paths(changes: Changes) -> dict[str, tuple[str, str]]:
    return {value.path: (value.before, value.after) for value in changes.resources[0].values}


def of(before: Any, after: Any, **more: Any) -> Changes:
    return read(plan(changed(before, after, **more)), salt=SALT)


def without_nulls(value: Any) -> Any:
    """To Terraform an attribute that is null is not there."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@given(objects)
def test_a_value_that_stays_is_not_reported(same: dict[str, Any]) -> None:
    assert of(same, json.loads(json.dumps(same))).resources[0].values == ()


@given(objects, objects)
def test_every_value_that_changes_is_shown(before: dict[str, Any], after: dict[str, Any]) -> None:
    assume(json.dumps(without_nulls(before), sort_keys=True) != json.dumps(without_nulls(after), sort_keys=True))
    changes = of(before, after)
    assert changes.resources[0].values
    text = shown(changes)
    for value in changes.resources[0].values:
        assert value.path in text
        for side in (value.before, value.after):
            assert side in text or "\\n" in side


@settings(max_examples=25)
@given(objects, objects, st.data())
def test_a_sensitive_value_is_never_there(before: dict[str, Any], after: dict[str, Any], data: st.DataObject) -> None:
    secret = "s3cr3t-" + "x" * 8
    key = data.draw(st.sampled_from(sorted(after)))
    wrapped = data.draw(st.sampled_from([secret, [secret], {"inner": [{"deep": secret}]}, f"a\n{secret}\n"]))
    marks = data.draw(st.sampled_from([True, {key: True}]))
    side = data.draw(st.sampled_from(["before", "after", "both"]))
    before, after = dict(before), dict(after)
    if side != "after":
        before[key] = wrapped
    if side != "before":
        after[key] = wrapped
    for actions in (("update",), ("delete", "create"), ("create",)):
        changes = of(
            None if actions == ("create",) else before, after, actions=actions,
            before_sensitive=marks, after_sensitive=marks, after_unknown={"other": True},
        )  # fmt: skip
        assert secret not in shown(changes)
        assert secret not in repr(changes)


def test_a_mark_deep_inside_masks_that_value_alone() -> None:
    changes = of(
        {"auth": [{"user": "a", "key": "hush"}]},
        {"auth": [{"user": "b", "key": "hush-hush"}]},
        before_sensitive={"auth": [{"key": True}]},
        after_sensitive={"auth": [{"key": True}]},
    )
    assert "auth[0].key: (sensitive value) -> (sensitive value, another)" in shown(changes)
    assert 'auth[0].user: "a" -> "b"' in shown(changes)
    assert "hush" not in shown(changes) + repr(changes)


@pytest.mark.parametrize("copy", ["hush", ["x", "hush"], {"a": {"b": "so hush it"}}, '{"in": "hush"}', 'hush "'])
def test_what_a_provider_copies_from_a_sensitive_value_is_masked_too(copy: Any) -> None:
    secret = 'hush "' if isinstance(copy, str) and copy.endswith('"') else "hush"
    changes = of({"key": secret, "copy": None}, {"key": secret, "copy": copy}, before_sensitive={"key": True})
    assert "hush" not in shown(changes) + repr(changes)
    other = changed({"note": "a"}, {"note": f"say {secret}"}, address="google_thing.two")
    marked = changed({"key": secret}, {"key": "new"}, before_sensitive={"key": True})
    assert "hush" not in repr(read(plan(marked, other), salt=SALT))


def test_a_secret_in_a_policy_that_is_json_itself_is_masked_too() -> None:
    secret = 'hush "x'
    changes = of({"key": secret}, {"key": secret, "policy": json.dumps({"in": secret})}, before_sensitive={"key": True})
    assert "hush" not in shown(changes) + repr(changes)


def test_sensitive_values_of_two_plans_can_be_compared_and_only_with_the_same_salt() -> None:
    def digest(secret: str, salt: str) -> str:
        marked = changed({"key": "old"}, {"key": secret}, after_sensitive={"key": True})
        return read(plan(marked), salt=salt).resources[0].values[0].after

    assert digest("new", "a") == digest("new", "a")
    assert digest("new", "a") != digest("newer", "a")
    assert digest("new", "a") != digest("new", "b")


def test_true_and_one_are_two_values() -> None:
    assert paths(of({"a": 1, "b": 0}, {"a": True, "b": 0.0})) == {"a": ("1", "true"), "b": ("0", "0.0")}


def test_a_list_that_gets_shorter_is_reported_even_by_a_null() -> None:
    assert paths(of({"a": ["x", None]}, {"a": ["x"]})) == {"a[1]": ("null", "(nothing)")}


def test_a_block_without_a_value_in_it_is_reported() -> None:
    assert paths(of({"b": []}, {"b": [{"enabled": None}]})) == {"b[0]": ("(nothing)", '{"enabled": null}')}


def test_what_is_known_after_apply_is_said_so() -> None:
    changes = of({"id": "1", "self": {"a": 1}}, {"self": {}}, after_unknown={"id": True, "self": True})
    assert paths(changes) == {"id": ('"1"', UNKNOWN), "self": ('{"a": 1}', UNKNOWN)}


@pytest.mark.parametrize(
    ("actions", "word"),
    [
        (["create"], "create"),
        (["update"], "change in place"),
        (["delete"], "delete"),
        (["delete", "create"], "replace"),
        (["create", "delete"], "replace"),
        (["forget"], "forget"),
    ],
)
def test_each_resource_has_a_line_with_its_action(actions: list[str], word: str) -> None:
    changes = read(plan(changed({"a": 1}, {"a": 2}, actions=tuple(actions))), salt=SALT)
    assert f"  {word}: {ADDRESS}" in shown(changes).splitlines()
    assert heading(changes) == f"1 to {word}"


def test_an_import_is_an_action_even_where_nothing_changes() -> None:
    changes = of({"a": 1}, {"a": 1}, actions=("no-op",), importing={"id": "projects/p/x"})
    assert shown(changes) == f"  import: {ADDRESS} (from projects/p/x)"
    assert not changes.empty


def test_what_is_moved_is_reported() -> None:
    changes = of({"a": 1}, {"a": 1}, actions=("no-op",), previous_address="google_thing.other")
    assert shown(changes) == f"  move: {ADDRESS} (was google_thing.other)"


def test_a_replacement_says_why_and_by_what() -> None:
    changes = of(
        {"name": "a", "size": 1, "same": 1}, {"name": "b", "size": 2, "same": 1}, actions=("delete", "create"),
        replace_paths=[["name"]], action_reason="replace_because_cannot_update",
    )  # fmt: skip
    assert shown(changes).splitlines() == [
        f"  replace: {ADDRESS} (it cannot be changed in place)",
        '      name: "a" -> "b"   # forces replacement',
        "      size: 1 -> 2",
    ]


def test_a_text_of_several_lines_is_reported_by_the_lines_that_differ() -> None:
    before = {"values": ["a: 1\nb: 2\nc: 3\nd: 4\ne: 5\n"]}
    text = shown(of(before, {"values": ["a: 1\nb: 2\nc: 3\nd: 4\ne: 6\n"]}))
    assert "-e: 5" in text
    assert "+e: 6" in text
    assert "a: 1" not in text


def test_drift_is_reported_unless_a_provider_only_writes_nothing_in_another_way() -> None:
    drift = (
        changed({"mtu": 1460}, {"mtu": 8896}),
        changed({"labels": None, "list": []}, {"labels": {}, "list": None}, address="google_thing.two"),
        changed({"a": 1}, None, actions=("delete",), address="google_thing.three"),
    )
    changes = read(plan(drift=drift), salt=SALT)
    assert shown(changes).splitlines() == [
        f"  drift: {ADDRESS} was changed behind Terraform's back",
        "      mtu: 1460 -> 8896",
        "  drift: google_thing.three was deleted behind Terraform's back",
    ]
    assert changes.empty


def test_an_output_that_changes_is_a_change() -> None:
    output = {"actions": ["update"], "before": "a", "after": "b", "after_unknown": False}
    changes = read(plan(network=output, same={**output, "actions": ["no-op"]}), salt=SALT)
    assert not changes.empty
    assert shown(changes).splitlines() == ["  outputs:", '      network: "a" -> "b"']


def test_nothing_to_do_is_said_so() -> None:
    changes = read(plan(changed({"a": 1}, {"a": 1}, actions=("no-op",)), changed(None, {}, actions=("read",))), salt="")
    assert (changes.empty, heading(changes)) == (True, "no changes")
