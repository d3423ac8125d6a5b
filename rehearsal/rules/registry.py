"""Every resource type and data source that is played, by provider."""

from __future__ import annotations

from collections.abc import Mapping

from rehearsal.rules import cloud_build, gke, helm, iam, kubernetes, network, node_pools, project, services, storage
from rehearsal.rules.kind import Kind, Source

_GOOGLE: tuple[Kind, ...] = (
    *network.KINDS,
    *project.KINDS,
    *iam.KINDS,
    *storage.KINDS,
    *gke.KINDS,
    *node_pools.KINDS,
    *services.KINDS,
    *cloud_build.KINDS,
)

_KUBERNETES: tuple[Kind, ...] = kubernetes.KINDS

KINDS: Mapping[str, Mapping[str, Kind]] = {
    "google": {kind.type_: kind for kind in _GOOGLE},
    "kubernetes": {kind.type_: kind for kind in _KUBERNETES},
    "helm": {kind.type_: kind for kind in helm.KINDS},
}
SOURCES: Mapping[str, Mapping[str, Source]] = {
    "google": {source.type_: source for source in (*project.SOURCES, *iam.SOURCES, *gke.SOURCES)},
}
