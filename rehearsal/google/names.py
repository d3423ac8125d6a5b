"""Full names of Google resources: where a resource is, what a reference names, what an import id says.

A template of a full name has {attribute} in it; vocabulary/resource_types has one of each type.
"""

from __future__ import annotations

import re
from typing import Any

from rehearsal.cloud import Attributes
from rehearsal.terraform.resource_type import Client
from rehearsal.terraform.values import Unknown

_PLACE = ("project", "region", "location", "zone")

_ATTRIBUTE = r"\{([\w.]+)(?::last)?\}"


def region_of(location: object) -> str:
    """us-east5 for us-east5 and for us-east5-b."""
    return "-".join(str(location or "").split("-")[:2])


def place(client: Client, values: Attributes) -> dict[str, str]:
    """Project, region, location and zone of a resource: its own, or those of the provider's settings."""
    own = {key: values.get(key) for key in _PLACE}
    given = {key: str(value) for key, value in own.items() if value and not isinstance(value, Unknown)}
    settings = {key: str(client.settings.get(key) or "") for key in _PLACE}
    region = given.get("region") or region_of(given.get("location")) or settings["region"]
    return {**settings, "location": region, **given, "region": region}


def full_name(reference: str, template: str, here: dict[str, str]) -> str:
    """What `reference` names: a self link, a full name, or a short name, the last attribute of `template`."""
    text = re.sub(r"^https://[^/]+/(?:compute/)?v\d\w*/|^//[^/]+/", "", reference)
    if text.startswith("projects/"):
        return text
    short = text.rpartition("/")[2]
    return re.sub(r"\{[^{}]+\}$", short, template).format_map(here)


def parse_import_id(template: str, id_: str) -> dict[str, Any] | None:
    """The attributes in an import id: a full name, or its last parts with slashes between; None if it is neither."""
    parts = attributes_of(template)
    whole = re.fullmatch(_pattern(template), id_)
    if whole is not None:
        return whole.groupdict()
    given = id_.split("/")
    return dict(zip(parts[-len(given) :], given, strict=True)) if len(given) <= len(parts) else None


def attributes_of(template: str) -> list[str]:
    """The attributes in a template, each once."""
    return list(dict.fromkeys(re.findall(_ATTRIBUTE, template)))


def _pattern(template: str) -> str:
    """A regular expression of the full names that `template` stands for."""
    literals = [re.escape(text) for text in re.split(_ATTRIBUTE, template)[::2]]
    names = re.findall(_ATTRIBUTE, template)
    groups = [f"(?P={name})" if name in names[:at] else f"(?P<{name}>.+)" for at, name in enumerate(names)]
    return "".join(literal + group for literal, group in zip(literals, [*groups, ""], strict=True))
