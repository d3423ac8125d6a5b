"""What terraform-plugin-sdk makes of a configuration, and what Terraform asks of the answer all the same."""

from __future__ import annotations

import dataclasses

import pytest

from rehearsal.terraform import sdk_configuration
from rehearsal.terraform.consistency import Inconsistent, check_plan, check_result
from rehearsal.terraform.schemas import Attribute, Block, NestedBlock
from rehearsal.terraform.values import UNKNOWN
from vocabulary.resource_types import ProviderFacts

TEXT = Attribute(type_="string", optional=True)
INNER = Block(attributes={"kind": TEXT, "on": Attribute(type_="bool", optional=True)})
BLOCK = Block(
    attributes={"place": TEXT, "made": Attribute(type_="string", optional=True, computed=True)},
    blocks={
        "rows": NestedBlock(
            block=Block(attributes={"kind": TEXT}, blocks={"in": NestedBlock(block=INNER, nesting="list")}),
            nesting="list",
        ),
        "members": NestedBlock(block=Block(blocks={"in": NestedBlock(block=INNER, nesting="list")}), nesting="set"),
    },
)
FACTS = ProviderFacts(
    defaults={"rows.kind": "plain", "rows.in.on": True},
    forms={"place": "upper"},
    computed_blocks=("rows", "rows.in", "members.in"),
)


def value(**more: object) -> dict[str, object]:
    return {"place": None, "made": None, "rows": [], "members": []} | more


def test_defaults_fill_what_nobody_set_in_every_block_that_is_there() -> None:
    written = value(rows=[{"kind": None, "in": [{"kind": "x", "on": None}]}, {"kind": "own", "in": []}])
    done = sdk_configuration.completed(
        BLOCK, written, value(rows=[{"kind": "old", "in": []}, {"kind": "old", "in": []}]), FACTS
    )
    assert done["rows"] == [{"kind": "plain", "in": [{"kind": "x", "on": True}]}, {"kind": "own", "in": []}]


def test_a_default_that_another_attribute_suppresses_is_not_planned() -> None:
    block = Block(attributes=BLOCK.attributes | {"auto": Attribute(type_="bool", optional=True)}, blocks=BLOCK.blocks)
    facts = dataclasses.replace(FACTS, unplanned_with={"auto": ("rows.kind",)})
    for auto, was, planned in ((False, None, "plain"), (True, None, None), (True, "old", "old")):
        prior = value(rows=[{"kind": was, "in": []}], auto=False)
        rows: list[object] = [{"kind": None, "in": []}]
        assert (
            sdk_configuration.completed(block, value(rows=rows, auto=auto), prior, facts)["rows"][0]["kind"] == planned
        )


def test_a_form_of_its_own_is_planned() -> None:
    assert sdk_configuration.completed(BLOCK, value(place="us-east5"), None, FACTS)["place"] == "US-EAST5"


def test_what_was_empty_stays_empty_in_its_way() -> None:
    assert sdk_configuration.completed(BLOCK, value(), value(place=""), FACTS)["place"] == ""
    assert sdk_configuration.completed(BLOCK, value(), value(place="x"), FACTS)["place"] is None


def test_a_block_that_the_server_decides_is_unknown_at_first_and_stays_as_it_was_later() -> None:
    was = [{"kind": "server", "in": [{"kind": "server", "on": False}]}]
    assert sdk_configuration.completed(BLOCK, value(), None, FACTS)["rows"] == UNKNOWN
    assert sdk_configuration.completed(BLOCK, value(), value(rows=was), FACTS)["rows"] == was
    written = value(rows=[{"kind": "own", "in": []}, {"kind": "new", "in": []}])
    done = sdk_configuration.completed(BLOCK, written, value(rows=was), FACTS)
    assert done["rows"] == [{"kind": "own", "in": was[0]["in"]}, {"kind": "new", "in": UNKNOWN}]


def test_a_member_of_a_set_gets_no_blocks_from_the_server() -> None:
    assert sdk_configuration.completed(BLOCK, value(members=[{"in": []}]), None, FACTS)["members"] == [{"in": []}]


@pytest.mark.parametrize("planned", [{"place": "b"}, {"rows": [{"kind": "a", "in": []}]}])
def test_a_plan_that_is_not_what_is_configured_is_reported(planned: dict[str, object]) -> None:
    config = value(place="a", made="x")
    check_plan(BLOCK, config, config)
    with pytest.raises(Inconsistent):
        check_plan(BLOCK, config, config | planned)


def test_a_plan_may_decide_what_nobody_configured_only_where_the_server_may() -> None:
    check_plan(BLOCK, value(), value(made="server"))
    with pytest.raises(Inconsistent, match="place: planned 'server', configured nothing"):
        check_plan(BLOCK, value(), value(place="server"))


@pytest.mark.parametrize(
    "state", [{"place": "b"}, {"made": UNKNOWN}, {"rows": [{"kind": "z", "in": []}]}, {"rows": []}]
)
def test_a_result_that_is_not_what_was_planned_is_reported(state: dict[str, object]) -> None:
    planned = value(place="a", made=UNKNOWN, rows=[{"kind": "a", "in": []}])
    check_result(BLOCK, planned, planned | {"made": "server"})
    with pytest.raises(Inconsistent):
        check_result(BLOCK, planned, planned | {"made": "server"} | state)
