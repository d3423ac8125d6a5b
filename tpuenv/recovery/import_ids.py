"""The id by which `terraform import` reads what a plan would create, from vocabulary/resource_types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vocabulary.resource_types import facts_of, fill, is_imported


@dataclass(frozen=True, kw_only=True)
class PlannedObject:
    """An object that a plan would create: `values` are those that the plan knows."""

    address: str
    type_: str
    values: Mapping[str, Any]

    def text(self, template: str) -> str | None:
        """`template` with the planned values in it; None when one of them is not known yet."""
        return fill(template, self.values)

    @property
    def import_id(self) -> str | None:
        """None when it depends on an object that does not exist yet, or the server gives it.

        Raises UnknownResourceType.
        """
        template = facts_of(self.type_).import_id
        return self.text(template) if template else None


def planned_objects(plan: Mapping[str, Any], configuration: Mapping[str, Any]) -> list[PlannedObject]:
    """What a plan (`terraform show -json`) would create and `terraform import` can import, in the plan's order.

    A project, region or location that neither the plan nor the stack's JSON gives is the provider's.
    """
    provider = (configuration.get("provider", {}).get("google") or [{}])[0]
    places = {"project": provider.get("project"), "region": provider.get("region"), "location": provider.get("region")}
    return [
        PlannedObject(address=change["address"], type_=change["type"], values={**places, **_known(change["change"])})
        for change in plan.get("resource_changes", ())
        if change["mode"] == "managed" and change["change"]["actions"] == ["create"] and is_imported(change["type"])
    ]


def _known(change: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (change.get("after") or {}).items() if value is not None}
