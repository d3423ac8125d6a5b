"""Full names of Google resources: made of a resource's attributes, read from a reference or an import id.

A path is a full name with {attribute} in it: "projects/{project}/global/networks/{name}".
"""

from __future__ import annotations

import re
from typing import Any

from rehearsal.cloud import Attributes
from rehearsal.terraform.resource_type import Client
from rehearsal.terraform.values import Unknown

_PLACE = ("project", "region", "location", "zone")

# Parts of a full name that may have slashes of their own. Any other reference counts with its last part.
_WITH_SLASHES = ("role", "member", "name", "service_account_id")


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


def name_of(client: Client, path: str, values: Attributes) -> str:
    """The full name of a resource with these attributes."""
    here = place(client, values)
    parts = {}
    for part in re.findall(r"\{(\w+)\}", path):
        value = str(values.get(part) or "")
        parts[part] = here[part] if part in _PLACE else value if part in _WITH_SLASHES else value.rpartition("/")[2]
    return path.format_map(parts)


def full_name(reference: object, path: str, here: dict[str, str]) -> str:
    """What `reference` names: a self link, a full name, or a short name, which is put into `path`."""
    text = re.sub(r"^https://[^/]+/(?:compute/)?v\d\w*/|^//[^/]+/", "", str(reference or ""))
    return text if text.startswith("projects/") else path.format_map(here | {"name": text.rpartition("/")[2]})


def parse_import_id(path: str, id_: str) -> dict[str, Any] | None:
    """The attributes in an import id: a full name, or its last parts with slashes between; None if it is neither."""
    parts = list(dict.fromkeys(re.findall(r"\{(\w+)\}", path)))
    whole = re.fullmatch(_pattern(path), id_)
    if whole is not None:
        return whole.groupdict()
    given = id_.split("/")
    return dict(zip(parts[-len(given) :], given, strict=True)) if len(given) <= len(parts) else None


def _pattern(path: str) -> str:
    """A regular expression of the full names that `path` stands for."""
    seen: set[str] = set()

    def group(match: re.Match[str]) -> str:
        name = match.group(1)
        text = f"(?P={name})" if name in seen else f"(?P<{name}>.+)"
        seen.add(name)
        return text

    return re.sub(r"\\\{(\w+)\\\}", group, re.escape(path))
