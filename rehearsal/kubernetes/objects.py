"""The objects of one cluster, as they are stored: what webhooks and controllers read and write."""

from __future__ import annotations

from typing import Any

from rehearsal.cloud import Cloud
from rehearsal.kubernetes.resources import ALL, BUILT_IN, CRD, NAMESPACE, RAY, Resource
from rehearsal.kubernetes.status import Status
from vocabulary.keys import TPU

KIND = "kubernetes"  # the kind of all of a cluster's objects in the cloud
CLUSTER = "google_container_cluster"

Object = dict[str, Any]


def full_name(body: Object) -> str:
    """Namespace and name, as `kubectl` and Kueue write them."""
    return f"{body['metadata'].get('namespace', '')}/{body['metadata']['name']}"


def chips_of(pod: Object) -> int:
    """The TPU chips in the limits of a pod's spec, init containers included."""
    containers = [*(pod.get("containers") or []), *(pod.get("initContainers") or [])]
    return sum(int(((item.get("resources") or {}).get("limits") or {}).get(TPU, 0)) for item in containers)


class Objects:
    """The stored objects of the cluster with this full name."""

    def __init__(self, cloud: Cloud, cluster: str) -> None:
        self.cloud = cloud
        self.cluster = cluster

    def resource(self, api_version: str, kind: str) -> Resource:
        """The served kind; Status 404 when there is none, as before its CRD is installed."""
        for item in ALL:
            if (item.api_version, item.kind) == (api_version, kind) and self._serves(item):
                return item
        raise Status(404, f'no matches for kind "{kind}" in version "{api_version}"')

    def by_plural(self, api_version: str, plural: str) -> Resource:
        """The served kind under its name in paths."""
        for item in ALL:
            if (item.api_version, item.plural) == (api_version, plural) and self._serves(item):
                return item
        raise Status(404, "the server could not find the requested resource")

    def _serves(self, resource: Resource) -> bool:
        if resource in BUILT_IN:
            return True
        if resource in RAY and self._has_ray():
            return True
        return self.cloud.get(KIND, self.key(CRD, "", resource.qualified)) is not None

    def _has_ray(self) -> bool:
        addons = (self.cloud.get(CLUSTER, self.cluster) or {}).get("addons_config") or [{}]
        return any(config.get("enabled") for config in addons[0].get("ray_operator_config") or [])

    def key(self, resource: Resource, namespace: str, name: str) -> str:
        return f"{self.cluster}|{resource.api_version}|{resource.kind}|{namespace}|{name}"

    def everything(self) -> list[Object]:
        """All objects of the cluster, as they are stored."""
        return [item.attributes for item in self.cloud.find(KIND, prefix=f"{self.cluster}|")]

    def of_kind(self, *kinds: str) -> list[Object]:
        """The stored objects of these kinds, in order of creation."""
        served = [f"{self.cluster}|{item.api_version}|{item.kind}|" for item in ALL if item.kind in kinds]
        return [item.attributes for item in self.cloud.find(KIND, prefix=tuple(served))]

    def remove(self, body: Object) -> None:
        """Remove an object in spite of its finalizers; a namespace with all that is in it."""
        metadata = body["metadata"]
        resource = next(item for item in ALL if (item.api_version, item.kind) == (body["apiVersion"], body["kind"]))
        if resource is NAMESPACE:
            for item in self.everything():
                if item["metadata"].get("namespace") == metadata["name"]:
                    self.remove(item)
        self.cloud.delete(KIND, self.key(resource, metadata.get("namespace", ""), metadata["name"]))

    def store(self, body: Object) -> None:
        """Writes an object as a controller does, without webhooks."""
        resource = next(item for item in ALL if (item.api_version, item.kind) == (body["apiVersion"], body["kind"]))
        metadata = body["metadata"]
        self.cloud.put(KIND, self.key(resource, metadata.get("namespace", ""), metadata["name"]), body)
