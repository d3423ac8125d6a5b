"""What Terraform asks of every answer: a plan keeps what is configured, and what is applied is what was planned.

Terraform lets providers written with the SDK break this (`legacy_type_system`). The fake ones answer in their name,
so they are held to it here. Source: `AssertPlanValid` and `AssertObjectCompatible` in hashicorp/terraform,
internal/plans/objchange.
"""

from __future__ import annotations

from rehearsal.terraform.schemas import Block
from rehearsal.terraform.values import Value, is_known

# The API server's, of every object: the Kubernetes provider plans an update with the old ones, and reads the new ones.
_READ_ANEW = ("generation", "resource_version")


class Inconsistent(Exception):
    """An answer that Terraform would refuse; which attribute, and why."""


def check_plan(block: Block, config: dict[str, Value], planned: dict[str, Value]) -> None:
    """Raises Inconsistent where a plan differs from what is configured, or sets what nobody configured."""
    for name, attribute in block.attributes.items():
        if config[name] is not None:
            _ask(planned[name] == config[name], f"{name}: planned {planned[name]!r}, configured {config[name]!r}")
        elif not attribute.computed:
            _ask(planned[name] is None, f"{name}: planned {planned[name]!r}, configured nothing")
    for name, nested in block.blocks.items():
        given, plan = config[name], planned[name]
        if nested.nesting in ("list", "set") and isinstance(given, list):
            _ask(isinstance(plan, list) and len(plan) == len(given), f"{name}: another number of blocks")
            if nested.nesting == "list":
                for one, other in zip(given, plan, strict=True):
                    check_plan(nested.block, one, other)


def check_result(block: Block, planned: dict[str, Value], state: dict[str, Value]) -> None:
    """Raises Inconsistent where a result is not what was planned, or is unknown."""
    for name in block.attributes:
        value, there = planned[name], state.get(name)
        same = not is_known(value) or there == value or name in _READ_ANEW
        _ask(same, f"{name}: planned {value!r}, is {there!r}")
        _ask(is_known(there), f"{name}: unknown after apply")
    for name, nested in block.blocks.items():
        given: Value = planned[name]
        result: Value = state.get(name)
        if isinstance(given, list):
            _ask(isinstance(result, list) and len(result) == len(given), f"{name}: another number of blocks")
            for one, other in zip(given, result, strict=True) if nested.nesting == "list" else ():
                check_result(nested.block, one, other)


def _ask(holds: bool, words: str) -> None:
    if not holds:
        raise Inconsistent(words)
