"""What Terraform does itself around a provider's plan and apply: it completes the configuration, and proposes.

https://github.com/hashicorp/terraform/blob/main/docs/resource-instance-change-lifecycle.md
"""

from __future__ import annotations

from typing import Any

from rehearsal.terraform import schemas, values
from rehearsal.terraform.schemas import Block, NestedBlock
from rehearsal.terraform.values import Dynamic, Value


def complete(block: Block, config: dict[str, Any]) -> dict[str, Value]:
    """A configuration as Terraform sends it: every attribute and block is there."""
    unknown = config.keys() - block.attributes.keys() - block.blocks.keys()
    assert not unknown, f"no such argument: {unknown}"
    out: dict[str, Value] = {}
    for name, attribute in block.attributes.items():
        value = config.get(name)
        dynamic = attribute.type_ == "dynamic" and value is not None
        out[name] = Dynamic(values.type_of(value), value) if dynamic else _nulls(attribute.type_, value)
    for name, nested in block.blocks.items():
        out[name] = _complete_block(nested, config.get(name))
    return out


def _nulls(type_: schemas.CtyType, value: Any) -> Any:
    if value is None or isinstance(type_, str):
        return value
    kind, inner = type_
    if kind == "object":
        return {name: _nulls(inner_type, value.get(name)) for name, inner_type in inner.items()}
    if kind == "map":
        return dict(value)
    return [_nulls(inner, item) for item in value]


def _complete_block(nested: NestedBlock, given: Any) -> Any:
    if nested.nesting == "single":
        return None if given is None else complete(nested.block, given)
    if nested.nesting == "map":
        return {key: complete(nested.block, item) for key, item in (given or {}).items()}
    items = given if isinstance(given, list) else [] if given is None else [given]
    return [complete(nested.block, item) for item in items]


def proposed(block: Block, prior: dict[str, Value] | None, config: dict[str, Value]) -> dict[str, Value]:
    """Terraform's proposal: the configuration, with prior values where it is silent and the attribute is computed."""
    if prior is None:
        return config
    out = dict(config)
    for name, attribute in block.attributes.items():
        if attribute.computed and config[name] is None:
            out[name] = prior.get(name)
    for name, nested in block.blocks.items():
        before = prior.get(name)
        if nested.nesting == "list" and isinstance(config[name], list):
            old = before or []
            out[name] = [
                proposed(nested.block, old[at] if at < len(old) else None, item) for at, item in enumerate(config[name])
            ]
        elif nested.nesting == "single" and config[name] is not None:
            out[name] = proposed(nested.block, before, config[name])
        elif nested.nesting == "set" and isinstance(config[name], list):
            old = before or []
            out[name] = [next((x for x in old if _matches(item, x)), item) for item in config[name]]
    return out


def _matches(config: Any, there: Any) -> bool:
    if isinstance(config, dict) and isinstance(there, dict):
        return all(_matches(value, there.get(key)) for key, value in config.items())
    if isinstance(config, list) and isinstance(there, list) and len(config) == len(there):
        return all(_matches(one, other) for one, other in zip(config, there, strict=True))
    return config is None or config == there
