"""The facts of resource types: complete for every type that a stack has, and for no others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.serve import schemas_of
from rehearsal.terraform.schemas import Block
from tests.rehearsal.fake import CACHE, provider_of
from tests.synthesis import EVERY_STACK, Synthesis
from vocabulary import resource_types
from vocabulary.resource_types import DATA, all_types, facts_of, fill, missing_facts

# By type: what a description of it may not leave out.
COMPLETE = {
    "google_pubsub_topic": {
        "api": "pubsub.googleapis.com",
        "noun": "Topic",
        "name": "projects/{project}/topics/{name}",
        "permissions": {"source": "https://x", "read": [], "create": [], "update": [], "delete": []},
        "provider": {"sdk": True},
    },
    "data.google_pubsub_topic": {"permissions": {"source": "https://x", "read": []}},
    "kubernetes_job_v1": {
        "import": "{metadata.name}",
        "permissions": {"source": "https://x", "role": "r"},
        "provider": {},
    },
}


def used(synthesis: Synthesis) -> set[str]:
    types: set[str] = set()
    for case, stack in EVERY_STACK:
        of_stack = synthesis.stack(case, stack)
        types |= {*of_stack["resource"], *(f"{DATA}{type_}" for type_ in of_stack.get("data", {}))}
    return types


def test_nothing_is_missing_about_any_type_of_any_stack(synthesis: Synthesis) -> None:
    missing = [fact for type_ in sorted(used(synthesis)) for fact in missing_facts(type_)]
    assert not missing, "\n" + "\n".join(missing)


def test_every_file_is_of_a_type_that_some_stack_uses(synthesis: Synthesis) -> None:
    assert {resource_types.file_of(type_) for type_ in {*all_types()} - used(synthesis)} == set()


@pytest.mark.parametrize("type_", all_types())
def test_the_permissions_of_a_type_say_where_they_are_documented(type_: str) -> None:
    permissions = facts_of(type_).permissions
    assert permissions.none or permissions.source.startswith("https://cloud.google.com/")
    given = [permission for name in ("read", "create", "update", "delete") for permission in permissions.of(name)]
    for permission in [*given, *permissions.also, *permissions.withheld]:
        assert re.fullmatch(r"[a-z]+\.\w+\.\w+", permission), permission


def block_of(type_: str) -> Block:
    if type_.startswith(DATA):
        type_ = type_.removeprefix(DATA)
        return schemas_of(provider_of(type_), CACHE).sources[type_]
    return schemas_of(provider_of(type_), CACHE).resources[type_]


IN_A_SCHEMA = [type_ for type_ in all_types() if type_ != "terraform_data"]


@pytest.mark.parametrize("type_", IN_A_SCHEMA)
def test_every_attribute_that_a_file_names_is_in_the_schema(type_: str) -> None:
    row, known = facts_of(type_), {*paths(block_of(type_), "")}
    templates = (row.name, row.import_, row.permissions.on, row.permissions.parent)
    named = {path for template in templates for path in re.findall(r"\{([\w.]+)(?::last)?\}", template)}
    named |= {*row.permissions.acts_as, *([row.listing.attribute.partition(".")[0]] if row.listing else [])}
    if facts := row.provider:
        named |= {*facts.replaces, *facts.count_replaces, *facts.defaults, *facts.forms, *facts.never_sent}
        named |= {*facts.unplanned_with, *(path for paths in facts.unplanned_with.values() for path in paths)}
        named |= {*facts.computed_blocks, *facts.sensitive, *facts.from_provider}
    # An attribute may be an object, with a path of its own for what is in it; a manifest may be anything.
    unknown = {path for path in named - {"number"} if not {path, path.rpartition(".")[0]} & known}
    assert {path for path in unknown if not path.startswith("manifest.")} == set()


def paths(block: Block, prefix: str) -> Iterator[str]:
    for name in block.attributes:
        yield prefix + name
    for name, nested in block.blocks.items():
        yield prefix + name
        yield from paths(nested.block, f"{prefix}{name}.")


@pytest.mark.parametrize("type_", COMPLETE)
def test_what_a_new_type_lacks_is_said(type_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_types, "FOLDER", tmp_path)
    assert missing_facts(type_) == [
        f"vocabulary/resource_types/{type_}.json does not exist; docs/resource-types.md says what to write into it"
    ]

    def lacks(described: dict[str, Any]) -> list[str]:
        (tmp_path / f"{type_}.json").write_text(json.dumps(described))
        facts_of.cache_clear()
        return missing_facts(type_)

    complete: dict[str, Any] = COMPLETE[type_]
    assert lacks(complete) == []
    for key in complete:
        said = lacks({name: value for name, value in complete.items() if name != key})
        assert said and all(fact.startswith(f"vocabulary/resource_types/{type_}.json: ") for fact in said)
        assert any(f'"{key}"' in fact for fact in said)
    for key in complete["permissions"]:
        permissions = {name: value for name, value in complete["permissions"].items() if name != key}
        assert lacks({**complete, "permissions": permissions})
    facts_of.cache_clear()


def test_a_file_with_a_mistake_in_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_types, "FOLDER", tmp_path)
    (tmp_path / "google_x.json").write_text('{"provider": {"replace": []}}')
    with pytest.raises(ValueError, match=r"google_x\.json: replace: no such key; there are version, sdk, replaces"):
        facts_of("google_x")
    (tmp_path / "google_x.json").write_text("{")
    with pytest.raises(ValueError, match=r"resource_types/google_x\.json: Expecting"):
        facts_of("google_x")


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{name}", "a/b"),
        ("x/{name:last}", "x/b"),
        ("{metadata.name}", "c"),
        ("{name}[ {condition.title}]", "a/b"),
        ("{name}[ {metadata.name}]!", "a/b c!"),
        ("{name} {missing}", None),
        ("{metadata.missing}", None),
        ("{size}", None),
    ],
)
def test_a_template_is_filled_from_the_values_of_attributes(template: str, filled: str | None) -> None:
    assert fill(template, {"name": "a/b", "size": 3, "metadata": [{"name": "c"}], "condition": []}) == filled
