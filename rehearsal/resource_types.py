"""Every resource type and data source that the fake providers have, by provider.

A Google type that vocabulary/resource_types describes and that has no rules here is created, read, updated, deleted and
imported by what is described of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rehearsal.cloudbuild import resources
from rehearsal.google import gke, iam, monitoring, network, node_pools, project, services, storage, tpu_vms
from rehearsal.google.resource import GoogleResource
from rehearsal.kubernetes import helm_release, typed_resources
from rehearsal.terraform.resource_type import DataSource, ResourceType
from vocabulary.resource_types import all_types

_WITH_RULES = [
    resource
    for module in (network, project, iam, storage, gke, node_pools, services, monitoring, resources)
    for resource in module.RESOURCE_TYPES
]
_GOOGLE: dict[str, ResourceType] = {
    type_: iam.member_resource(type_) if type_.endswith("_iam_member") else GoogleResource(type_=type_)
    for type_ in all_types()
    if type_.startswith("google_")
}
_BETA: dict[str, ResourceType] = {resource.type_: resource for resource in tpu_vms.RESOURCE_TYPES}

RESOURCE_TYPES: Mapping[str, Mapping[str, ResourceType]] = {
    "google": {type_: row for type_, row in _GOOGLE.items() if type_ not in _BETA}
    | {resource.type_: resource for resource in _WITH_RULES},
    "google-beta": _BETA,
    "kubernetes": {resource.type_: resource for resource in typed_resources.RESOURCE_TYPES},
    "helm": {resource.type_: resource for resource in helm_release.RESOURCE_TYPES},
}
DATA_SOURCES: Mapping[str, Mapping[str, DataSource]] = {
    "google": {source.type_: source for source in (*project.DATA_SOURCES, *iam.DATA_SOURCES, *gke.DATA_SOURCES)},
}
