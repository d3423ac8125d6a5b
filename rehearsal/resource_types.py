"""Every resource type and data source that is played, by provider."""

from __future__ import annotations

from collections.abc import Mapping

from rehearsal.cloudbuild import resources
from rehearsal.google import gke, iam, network, node_pools, project, services, storage
from rehearsal.kubernetes import helm, typed_resources
from rehearsal.terraform.kind import Kind, Source

_GOOGLE: tuple[Kind, ...] = (
    *network.KINDS,
    *project.KINDS,
    *iam.KINDS,
    *storage.KINDS,
    *gke.KINDS,
    *node_pools.KINDS,
    *services.KINDS,
    *resources.KINDS,
)

_KUBERNETES: tuple[Kind, ...] = typed_resources.KINDS

KINDS: Mapping[str, Mapping[str, Kind]] = {
    "google": {kind.type_: kind for kind in _GOOGLE},
    "kubernetes": {kind.type_: kind for kind in _KUBERNETES},
    "helm": {kind.type_: kind for kind in helm.KINDS},
}
SOURCES: Mapping[str, Mapping[str, Source]] = {
    "google": {source.type_: source for source in (*project.SOURCES, *iam.SOURCES, *gke.SOURCES)},
}
