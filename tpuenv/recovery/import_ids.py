"""The id by which `terraform import` finds what a plan would create, from what vocabulary/resource_types knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vocabulary.resource_types import facts_of, fill, is_imported


@dataclass(frozen=True, kw_only=True)
class Planned:
    """An object that a plan would create: `values` are those that are known before."""

    address: str
    type_: str
    values: Mapping[str, Any]

    def text(self, template: str) -> str | None:
        """`template` with the planned values in it; None when one of them is not known yet."""
        return fill(template, self.values)


def planned(plan: Mapping[str, Any], configuration: Mapping[str, Any]) -> list[Planned]:
    """What a plan (`terraform show -json`) would create and an import could bring, in the plan's order.

    A project, region or location that neither the plan nor the stack's JSON gives is the provider's.
    """
    provider = (configuration.get("provider", {}).get("google") or [{}])[0]
    places = {"project": provider.get("project"), "region": provider.get("region"), "location": provider.get("region")}
    return [
        Planned(address=change["address"], type_=change["type"], values={**places, **_known(change["change"])})
        for change in plan.get("resource_changes", ())
        if change["mode"] == "managed" and change["change"]["actions"] == ["create"] and is_imported(change["type"])
    ]


def _known(change: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (change.get("after") or {}).items() if value is not None}


def import_id(object_: Planned) -> str | None:
    """The id; None when it depends on what is not known before something else exists, or is the server's to give.

    Raises UnknownResourceType.
    """
    template = facts_of(object_.type_).import_id
    return object_.text(template) if template else None
