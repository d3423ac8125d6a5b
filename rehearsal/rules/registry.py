"""Every resource type and data source that is played, by provider."""

from __future__ import annotations

from collections.abc import Mapping

from rehearsal.rules import network, project
from rehearsal.rules.kind import Kind, Source

KINDS: Mapping[str, Mapping[str, Kind]] = {
    "google": {kind.type_: kind for kind in (*network.KINDS, *project.KINDS)},
}
SOURCES: Mapping[str, Mapping[str, Source]] = {
    "google": {source.type_: source for source in project.SOURCES},
}
