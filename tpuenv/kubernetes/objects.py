"""What every object of a cluster has: a name, a status, conditions."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def name_of(body: Object) -> str:
    """Its metadata.name; "" where it has none."""
    return str((body.get("metadata") or {}).get("name") or "")


def status_of(body: Object) -> Object:
    """Its status; empty where a controller has written none."""
    return body.get("status") or {}


def condition_of(body: Object, type_: str) -> Object:
    """The condition of that type; empty where there is none."""
    conditions = status_of(body).get("conditions") or []
    return next((item for item in conditions if item.get("type") == type_), {})


def is_true(body: Object, type_: str) -> bool:
    """Whether the condition of that type has the status "True"."""
    return condition_of(body, type_).get("status") == "True"
