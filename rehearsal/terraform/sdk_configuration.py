"""What terraform-plugin-sdk makes of a configuration before the provider's own code sees it.

Source: `schemaMap.Diff` in hashicorp/terraform-plugin-sdk 2.37.0, helper/schema/schema.go.
"""

from __future__ import annotations

import itertools
from collections.abc import Container
from typing import Any

from rehearsal.terraform.schemas import Block
from rehearsal.terraform.values import UNKNOWN, Value
from vocabulary.resource_types import ProviderFacts

_ZEROS: tuple[Value, ...] = ("", 0, False, [], {})


def completed(
    block: Block, value: dict[str, Value], prior: dict[str, Value] | None, facts: ProviderFacts
) -> dict[str, Value]:
    """`value`, a configuration or what Terraform proposes from it, with the defaults of the provider.

    An attribute that nobody sets and that is empty in `prior` stays as it is there: to the SDK both are the same. A
    block that the server decides is as it was, or not known yet.
    """
    kept = {path for setting, paths in facts.unplanned_with.items() if value.get(setting) is True for path in paths}
    return _completed(block, value, prior, facts, "", kept)


def _completed(
    block: Block,
    value: dict[str, Value],
    prior: dict[str, Value] | None,
    facts: ProviderFacts,
    prefix: str,
    kept: Container[str],
) -> dict[str, Value]:
    before = prior or {}
    out = dict(value)
    for name, attribute in block.attributes.items():
        path = prefix + name
        if out.get(name) is None:
            out[name] = before.get(name) if path in kept else facts.defaults.get(path)
        if out[name] is None and not attribute.computed and before.get(name) in _ZEROS:
            out[name] = before.get(name)
        if facts.forms.get(path) == "upper" and isinstance(out[name], str):
            out[name] = out[name].upper()
    for name, nested in block.blocks.items():
        items = out.get(name)
        if items == [] and prefix + name in facts.computed_blocks:
            out[name] = UNKNOWN if prior is None else before.get(name, [])
        elif isinstance(items, list):
            # A member of a set has no place, and so nothing before; what the server decides of it is nothing here.
            old: Any = itertools.repeat({}) if nested.nesting == "set" else before.get(name) or ()
            out[name] = [
                _completed(nested.block, item, was, facts, f"{prefix}{name}.", kept) if isinstance(item, dict) else item
                for item, was in zip(items, itertools.chain(old, itertools.repeat(None)), strict=False)
            ]
    return out
