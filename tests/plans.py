"""Pieces of a plan in Terraform's JSON, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ADDRESS = "google_thing.one"


def changed(
    before: Any, after: Any, *, actions: tuple[str, ...] = ("update",), address: str = ADDRESS, **more: Any
) -> dict[str, Any]:
    """One entry of `resource_changes`; marks (`after_unknown`, ...) go into the change, the rest beside it."""
    marks = {key: more.pop(key) for key in list(more) if key.startswith(("after_", "before_", "replace_", "importing"))}
    change = {"actions": list(actions), "before": before, "after": after, "after_unknown": False, **marks}
    return {"address": address, "change": change, **more}


def plan(*resources: Mapping[str, Any], drift: tuple[Mapping[str, Any], ...] = (), **outputs: Any) -> dict[str, Any]:
    """A plan with these changes of resources and outputs."""
    return {"resource_changes": list(resources), "resource_drift": list(drift), "output_changes": outputs}
