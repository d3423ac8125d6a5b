"""Schemas read from the bindings, compared with what the real providers say."""

from __future__ import annotations

import importlib.metadata
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rehearsal.resource_types import DATA_SOURCES, RESOURCE_TYPES
from rehearsal.terraform import bindings, schemas
from rehearsal.terraform.schemas import Attribute, Block, NestedBlock
from tests.rehearsal.fake import CACHE

PROVIDERS = ("google", "kubernetes", "helm")

# Types and data sources that the file of the real schemas may be too old to have.
LATER = {
    *("google_dns_managed_zone", "google_dns_record_set", "google_project_iam_audit_config"),
    "google_service_account",
}


def real_schemas() -> dict[str, Any]:
    """What `terraform providers schema` says of the real providers, for the types in question."""
    folder = os.environ.get("CRD_DIR")
    if not folder:
        pytest.skip("CRD_DIR is not set: the real providers' schemas are not at hand")
    schemas: dict[str, Any] = json.loads((Path(folder) / "terraform-providers.json").read_text())
    return schemas


def names_of(real: dict[str, Any]) -> list[str]:
    return [bindings.PROVIDER, *real["resources"], *(bindings.DATA + name for name in real["data"])]


# Comparable forms of both sides. The file has lost everything called "description"; the bindings have no limits on
# items beyond
# "at most one", no sensitivity and no versions. These are not compared.


def real_block(block: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        name: (_real_type(attribute), *(attribute.get(flag, False) for flag in ("required", "optional", "computed")))
        for name, attribute in block.get("attributes", {}).items()
    }
    for name, nested in block.get("block_types", {}).items():
        fields[name] = (nested["nesting_mode"], nested.get("max_items") == 1, real_block(nested["block"]))
    return fields


def _real_type(attribute: dict[str, Any]) -> Any:
    if "type" in attribute:
        return _without_description(attribute["type"])
    nested = attribute["nested_type"]
    return [nested["nesting_mode"], real_block(nested)]


def our_block(block: Block) -> dict[str, Any]:
    fields: dict[str, Any] = _our_attributes(block.attributes)
    for name, nested in block.blocks.items():
        fields[name] = (nested.nesting, nested.single_item and nested.nesting != "single", our_block(nested.block))
    return fields


def _our_attributes(attributes: dict[str, Attribute]) -> dict[str, Any]:
    return {
        name: (_our_type(attribute), attribute.required, attribute.optional, attribute.computed)
        for name, attribute in attributes.items()
        if name != "description"
    }


def _our_type(attribute: Attribute) -> Any:
    if attribute.nested is None:
        return _without_description(attribute.type_)
    return [attribute.nested.nesting, _our_attributes(attribute.nested.attributes)]


def _without_description(type_: Any) -> Any:
    if isinstance(type_, str):
        return type_
    if type_[0] == "object":
        return [
            "object",
            {name: _without_description(inner) for name, inner in type_[1].items() if name != "description"},
        ]
    return [type_[0], _without_description(type_[1])]


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_schemas_equal_the_real_providers(provider: str, tmp_path: Path) -> None:
    real = real_schemas()[provider]
    ours = bindings.read(provider, names_of(real), tmp_path)
    for name, block in ours.items():
        theirs = (
            real["provider"] if name == bindings.PROVIDER else real["resources"].get(name) or real["data"][name[5:]]
        )
        assert our_block(block) == real_block(theirs["block"]), name


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_type_that_is_supported_is_compared(provider: str) -> None:
    real = real_schemas()[provider]
    assert RESOURCE_TYPES[provider].keys() - real["resources"].keys() <= LATER
    assert DATA_SOURCES.get(provider, {}).keys() - real["data"].keys() <= LATER


def test_schemas_are_read_once_and_kept_by_the_version_of_the_bindings(tmp_path: Path) -> None:
    first = bindings.read("helm", ["helm_release"], tmp_path)
    (kept,) = tmp_path.iterdir()
    assert importlib.metadata.version("cdktf-cdktf-provider-helm") in kept.name
    kept.write_text(kept.read_text().replace('"chart"', '"map_of_the_sea"'))
    assert "map_of_the_sea" in bindings.read("helm", ["helm_release"], tmp_path)["helm_release"].attributes
    assert bindings.read("helm", ["helm_release", bindings.PROVIDER], tmp_path)["helm_release"] == first["helm_release"]


@pytest.mark.slow
def test_a_type_that_the_bindings_do_not_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="google_quantum_computer"):
        bindings.read("google", ["google_quantum_computer"], tmp_path)


def test_attributes_blocks_and_nesting() -> None:
    """A few by hand, so that this is tested where the real schemas are not at hand."""
    subnet = bindings.read("google", ["google_compute_subnetwork"], CACHE)["google_compute_subnetwork"]
    assert subnet.attributes["name"] == Attribute(type_="string", required=True)
    assert subnet.attributes["self_link"] == Attribute(type_="string", computed=True)
    assert subnet.attributes["region"] == Attribute(type_="string", optional=True, computed=True)
    ranges, logs, timeouts = (subnet.blocks[name] for name in ("secondary_ip_range", "log_config", "timeouts"))
    assert (ranges.nesting, ranges.single_item) == ("list", False)
    assert (logs.nesting, logs.single_item) == ("list", True)
    assert timeouts.nesting == "single"
    assert subnet.attributes["id"].computed


def test_a_schema_survives_the_way_to_disk_and_back() -> None:
    inner = NestedBlock(block=Block(attributes={"a": Attribute(type_="number", optional=True)}), nesting="set")
    nested = schemas.Nested(nesting="list", attributes={"b": Attribute(type_=["map", "string"], computed=True)})
    type_ = schemas.nested_type("list", nested.attributes)
    block = Block(attributes={"c": Attribute(type_=type_, optional=True, nested=nested)}, blocks={"d": inner})
    assert schemas.from_json(json.loads(json.dumps(schemas.to_json(block)))) == block
