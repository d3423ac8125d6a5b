"""Every resource type and data source that is supported, by provider."""

from __future__ import annotations

from collections.abc import Mapping

from rehearsal.cloudbuild import resources
from rehearsal.google import gke, iam, network, node_pools, project, services, storage
from rehearsal.kubernetes import helm, typed_resources
from rehearsal.terraform.resource_type import DataSource, ResourceType

_GOOGLE: tuple[ResourceType, ...] = (
    *network.RESOURCE_TYPES,
    *project.RESOURCE_TYPES,
    *iam.RESOURCE_TYPES,
    *storage.RESOURCE_TYPES,
    *gke.RESOURCE_TYPES,
    *node_pools.RESOURCE_TYPES,
    *services.RESOURCE_TYPES,
    *resources.RESOURCE_TYPES,
)

_KUBERNETES: tuple[ResourceType, ...] = typed_resources.RESOURCE_TYPES

RESOURCE_TYPES: Mapping[str, Mapping[str, ResourceType]] = {
    "google": {kind.type_: kind for kind in _GOOGLE},
    "kubernetes": {kind.type_: kind for kind in _KUBERNETES},
    "helm": {kind.type_: kind for kind in helm.RESOURCE_TYPES},
}
DATA_SOURCES: Mapping[str, Mapping[str, DataSource]] = {
    "google": {source.type_: source for source in (*project.DATA_SOURCES, *iam.DATA_SOURCES, *gke.DATA_SOURCES)},
}
