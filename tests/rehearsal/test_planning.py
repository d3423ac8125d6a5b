"""Plans: what is kept, what is unknown, what forces replacement."""

from __future__ import annotations

from rehearsal.terraform import planning
from rehearsal.terraform.fake_provider import path_message
from rehearsal.terraform.protocol_messages import MESSAGES
from rehearsal.terraform.schemas import Attribute, Block, NestedBlock
from rehearsal.terraform.values import UNKNOWN

INNER = Block(
    attributes={"given": Attribute(type_="string", optional=True), "made": Attribute(type_="string", computed=True)}
)
BLOCK = Block(
    attributes={
        "name": Attribute(type_="string", required=True),
        "id": Attribute(type_="string", computed=True),
        "size": Attribute(type_="number", optional=True),
        "zones": Attribute(type_=["set", "string"], optional=True),
    },
    blocks={
        "rows": NestedBlock(block=INNER, nesting="list"),
        "members": NestedBlock(block=INNER, nesting="set"),
        "times": NestedBlock(block=INNER, nesting="single"),
    },
)


def value(**more: object) -> dict[str, object]:
    return {"name": "n", "id": None, "size": None, "zones": None, "rows": [], "members": [], "times": None} | more


def test_what_the_server_decides_is_unknown_on_create_and_nothing_else() -> None:
    planned = planning.fill_unknown(BLOCK, value(rows=[{"given": None, "made": None}]), None)
    assert planned == value(id=UNKNOWN, rows=[{"given": None, "made": UNKNOWN}])


def test_what_the_server_had_decided_stays_also_when_it_was_nothing() -> None:
    prior = value(id=None, rows=[{"given": "a", "made": "b"}])
    proposed = value(size=2, rows=[{"given": "a", "made": "b"}, {"given": "new", "made": None}])
    planned = planning.fill_unknown(BLOCK, proposed, prior)
    assert planned["id"] is None
    assert planned["rows"] == [{"given": "a", "made": "b"}, {"given": "new", "made": UNKNOWN}]


def test_members_of_a_set_that_were_there_stay_and_new_ones_are_unknown() -> None:
    old, new = {"given": "a", "made": None}, {"given": "b", "made": None}
    planned = planning.fill_unknown(BLOCK, value(members=[new, old]), value(members=[old]))
    assert planned["members"] == [{"given": "b", "made": UNKNOWN}, old]


def test_blocks_that_are_not_known_stay_so() -> None:
    assert planning.fill_unknown(BLOCK, value(rows=UNKNOWN), None)["rows"] == UNKNOWN


def test_the_order_of_a_set_does_not_matter_and_that_of_a_list_does() -> None:
    one, two = {"given": "1", "made": None}, {"given": "2", "made": None}
    assert planning.same(
        BLOCK, value(zones=["a", "b"], members=[one, two]), value(zones=["b", "a"], members=[two, one])
    )
    assert not planning.same(BLOCK, value(rows=[one, two]), value(rows=[two, one]))


def test_null_and_empty_are_not_the_same() -> None:
    assert not planning.same(BLOCK, value(zones=None), value(zones=[]))


def test_paths_that_force_replacement_name_the_item_of_a_list_and_the_whole_of_a_set() -> None:
    before = value(rows=[{"given": "a"}, {"given": "b"}], members=[{"given": "a"}], times={"given": "a"})
    after = value(rows=[{"given": "a"}, {"given": "c"}], members=[{"given": "z"}], times={"given": "z"}, name="m")
    leaves = ("name", "rows.given", "members.given", "times.given", "size")
    paths = planning.replacements(BLOCK, before, after, leaves=leaves)
    assert paths == [("name",), ("rows", 1, "given"), ("members",), ("times", "given")]


def test_a_path_reaches_terraform_with_the_place_of_the_first_item() -> None:
    """An index of 0 is no less there than any other."""
    sent = path_message(("rows", 0, "given")).SerializeToString()
    steps = [step.ListFields() for step in MESSAGES["AttributePath"].FromString(sent).steps]
    assert [[(field.name, value) for field, value in step] for step in steps] == [
        [("attribute_name", "rows")],
        [("element_key_int", 0)],
        [("attribute_name", "given")],
    ]


def test_a_block_that_comes_or_goes_forces_replacement_for_the_attributes_in_it_that_do() -> None:
    one, empty = value(rows=[{"given": "a", "made": "b"}]), value(rows=[{"given": None, "made": "b"}])
    assert planning.replacements(BLOCK, value(), one, leaves=("rows.given",)) == [("rows", 0, "given")]
    assert planning.replacements(BLOCK, one, value(), leaves=("rows.given",)) == [("rows", 0, "given")]
    assert planning.replacements(BLOCK, value(), empty, leaves=("rows.given",)) == []


def test_a_block_whose_number_forces_replacement_may_change_inside() -> None:
    """hashicorp/terraform-plugin-sdk issue 1314."""
    one, other, two = ([{"given": letter, "made": None} for letter in letters] for letters in ("a", "z", "az"))
    assert planning.replacements(BLOCK, value(rows=one), value(rows=other), leaves=(), counts=("rows",)) == []
    for before, after in ((value(), value(rows=one)), (value(rows=one), value()), (value(rows=one), value(rows=two))):
        assert planning.replacements(BLOCK, before, after, leaves=(), counts=("rows",)) == [("rows",)]


def test_an_attribute_that_nobody_sets_any_more_is_no_change_where_it_was_empty() -> None:
    for nothing in ("", 0, False):
        assert planning.replacements(BLOCK, value(size=nothing), value(), leaves=("size",)) == []
    assert planning.replacements(BLOCK, value(), value(size=0), leaves=("size",)) == [("size",)]


def test_what_is_never_sent_stays_as_it_was() -> None:
    before, after = value(rows=[{"given": "a", "made": "x"}], size=1), value(rows=[{"given": "b", "made": "y"}], size=2)
    sent, kept = planning.without(BLOCK, before, after, ("rows.given",))
    assert sent == value(rows=[{"given": "a", "made": "y"}], size=2)
    assert kept == [("rows", 0, "given")]
    assert planning.without(BLOCK, before, before, ("rows.given",)) == (before, [])


def test_after_apply_nothing_is_unknown_and_what_was_known_is_kept() -> None:
    planned = planning.fill_unknown(BLOCK, value(rows=[{"given": "a", "made": None}]), None)
    decided = planning.overlay(planned, {"id": "7", "name": "not this", "rows": [{"given": "nor this", "made": "x"}]})
    assert planning.settle(BLOCK, decided) == value(id="7", rows=[{"given": "a", "made": "x"}])
    assert planning.settle(BLOCK, planned)["rows"] == [{"given": "a", "made": ""}]
