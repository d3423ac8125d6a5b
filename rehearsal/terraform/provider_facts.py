"""What the real providers' schemas and code say of a change, and the bindings do not: what replaces a resource, the
values that a provider fills in, and what it plans to change and never sends. How the file is made:
docs/provider-facts.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rehearsal.terraform.values import Value

FILE = Path(__file__).parent / "provider_facts.json"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Of one resource type. Every path is dotted and has no indexes: "node_config.spot".

    version         of the schema, as the state has it
    sdk             whether the type is written with terraform-plugin-sdk, which fills in defaults at plan
    replaces        attributes whose change replaces the resource (`ForceNew`)
    count_replaces  blocks whose number does; what is in them does not (hashicorp/terraform-plugin-sdk issue 1314)
    computed_blocks blocks that the server decides where nobody wrote one
    from_provider   attributes that are planned from the settings of the provider where nobody set them
    defaults        what an attribute is that nobody set
    sensitive       attributes that Terraform does not show; a state that does not say so is planned to be updated
    forms           attributes that the state has in a form of their own (`StateFunc`): "upper" for capitals
    never_sent      attributes that are planned in place and that no update sends to the API
    """

    version: int = 0
    sdk: bool = False
    replaces: tuple[str, ...] = ()
    count_replaces: tuple[str, ...] = ()
    computed_blocks: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    from_provider: tuple[str, ...] = ()
    defaults: Mapping[str, Value] = field(default_factory=dict)
    forms: Mapping[str, str] = field(default_factory=dict)
    never_sent: tuple[str, ...] = ()


def _facts(given: dict[str, Any]) -> Facts:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return Facts(**values)


FACTS: dict[str, Facts] = {type_: _facts(given) for type_, given in json.loads(FILE.read_text("utf-8")).items()}


def facts_of(type_: str) -> Facts:
    """The facts of a resource type; without any where the file has none."""
    return FACTS.get(type_, Facts())
