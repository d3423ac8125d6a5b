"""The API server: objects by kind, namespace and name; what it refuses; finalizers; dry run."""

from __future__ import annotations

import copy
import re
import uuid
from datetime import datetime, timezone
from typing import Any

from rehearsal.kubernetes import controllers, pods, webhooks
from rehearsal.kubernetes.nodes import node_objects
from rehearsal.kubernetes.objects import KIND, Object, Objects
from rehearsal.kubernetes.placement import all_nodes
from rehearsal.kubernetes.resources import NAMESPACE, NODE, POD, Resource
from rehearsal.kubernetes.status import Status

# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INITIAL_NAMESPACES = ("default", "kube-system", "kube-public", "gmp-system", "gke-managed-system")


class Api(Objects):
    """The API server of the cluster with this full name, as it stands in the cloud."""

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """One object, with its status as the controllers would have it; Status 404."""
        stored = self.cloud.get(KIND, self.key(resource, namespace, name))
        if stored is None and resource in (POD, NODE):
            made = self._made(resource, namespace)
            stored = next((item for item in made if item["metadata"]["name"] == name), None)
        if stored is None and resource is NAMESPACE and name in _INITIAL_NAMESPACES:
            stored = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name, "generation": 1}}
        if stored is None:
            raise Status(404, f'{resource.qualified} "{name}" not found')
        return controllers.with_status(self, stored)

    def exists(self, resource: Resource, namespace: str, name: str) -> bool:
        try:
            self.get(resource, namespace, name)
        except Status:
            return False
        return True

    def all(self, resource: Resource, namespace: str = "") -> list[Object]:
        """All objects of a kind, or those in one namespace."""
        prefix = f"{self.cluster}|{resource.api_version}|{resource.kind}|" + (f"{namespace}|" if namespace else "")
        stored = [item.attributes for item in self.cloud.find(KIND, prefix=prefix)]
        if resource in (POD, NODE):
            names = {(item["metadata"].get("namespace"), item["metadata"]["name"]) for item in stored}
            made = self._made(resource, namespace)
            stored += [
                item for item in made if (item["metadata"].get("namespace"), item["metadata"]["name"]) not in names
            ]
        return [controllers.with_status(self, item) for item in stored]

    def _made(self, resource: Resource, namespace: str) -> list[Object]:
        """The pods of jobs, or the nodes of node pools: they are worked out when they are asked for."""
        return pods.pods_of_jobs(self, namespace) if resource is POD else node_objects(self.cluster, all_nodes(self))

    def create(self, body: Object, *, dry_run: bool = False) -> Object:
        """The object as created; with `dry_run` nothing is kept, but everything is asked, webhooks included."""
        resource, new = self.resource(body.get("apiVersion", ""), body.get("kind", "")), copy.deepcopy(body)
        metadata = new.setdefault("metadata", {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{self.cloud.next('generated-name'):05x}"
        namespace, name = self._place(resource, metadata)
        with self.cloud.transaction():
            if resource.namespaced:
                self._namespace_takes(namespace, resource, name)
            if self.cloud.get(KIND, self.key(resource, namespace, name)) is not None:
                raise Status(409, f'{resource.qualified} "{name}" already exists', "AlreadyExists")
        # Outside of the transaction: a webhook that refuses counts its refusals.
        webhooks.review(self, new)
        with self.cloud.transaction():
            now = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
            metadata.update(uid=str(uuid.uuid4()), generation=1, creationTimestamp=now)
            metadata["resourceVersion"] = str(self.cloud.next("resource-version"))
            if not dry_run:
                self.store(new)
                controllers.reconcile(self)
        return new if dry_run else self.get(resource, namespace, name)

    def update(self, body: Object, *, dry_run: bool = False, owner: bool = False) -> Object:
        """Put `body` in the place of what has its name.

        Fields that anybody but the `owner` changes are remembered as theirs, as server-side apply's managed fields are.
        """
        resource = self.resource(body["apiVersion"], body["kind"])
        namespace, name = self._place(resource, body["metadata"])
        old = self.get(resource, namespace, name)
        new = copy.deepcopy(body)
        if resource.kind in controllers.STATUS_KINDS:
            new.pop("status", None)  # what the controllers say, not what a client sent back
        webhooks.review(self, new, old=old)
        with self.cloud.transaction():
            kept = {key: value for key, value in old["metadata"].items() if key in _SERVERS_METADATA}
            new["metadata"] |= kept
            new["metadata"]["resourceVersion"] = str(self.cloud.next("resource-version"))
            new["metadata"]["managedFields"] = (
                []
                if owner
                else sorted(
                    {*old["metadata"].get("managedFields", []), *differences(old.get("spec"), new.get("spec"), ".spec")}
                )
            )
            if new.get("spec") != old.get("spec"):
                new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
            if not dry_run:
                self.store(new)
                controllers.reconcile(self)
        return new if dry_run else self.get(resource, namespace, name)

    def patch(self, resource: Resource, namespace: str, name: str, change: Object, *, dry_run: bool = False) -> Object:
        """A merge patch (RFC 7386)."""
        return self.update(merge(self.get(resource, namespace, name), change), dry_run=dry_run)

    def delete(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Delete; the object is given back when finalizers keep it (it is then terminating), None when it is gone."""
        self.get(resource, namespace, name)
        with self.cloud.transaction():
            stored = self.cloud.get(KIND, self.key(resource, namespace, name))
            if stored is None:
                return None
            stored["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.store(stored)
            controllers.reconcile(self)
        return self.cloud.get(KIND, self.key(resource, namespace, name))

    def foreign_changes(self, live: Object, merged: Object) -> list[str]:
        """The fields that somebody else has set and `merged` would change."""
        changing = differences(live.get("spec"), merged.get("spec"), ".spec")
        return [field for field in changing if field in live["metadata"].get("managedFields", [])]

    def _place(self, resource: Resource, metadata: Object) -> tuple[str, str]:
        name, namespace = str(metadata.get("name", "")), str(metadata.get("namespace") or "")
        if not _NAME.fullmatch(name) or len(name) > (63 if resource is NAMESPACE else 253):
            raise Status(422, f'{resource.kind} "{name}" is invalid: metadata.name: Invalid value: "{name}"')
        if resource.namespaced and not namespace:
            raise Status(400, f"an empty namespace may not be set for {resource.qualified}")
        return (namespace if resource.namespaced else ""), name

    def _namespace_takes(self, namespace: str, resource: Resource, name: str) -> None:
        stored = self.cloud.get(KIND, self.key(NAMESPACE, "", namespace))
        if stored is None and namespace not in _INITIAL_NAMESPACES:
            raise Status(404, f'namespaces "{namespace}" not found')
        if stored is not None and "deletionTimestamp" in stored["metadata"]:
            raise Status(
                403,
                f'{resource.qualified} "{name}" is forbidden: unable to create new content in namespace {namespace}'
                " because it is being terminated",
            )


_SERVERS_METADATA = ("uid", "creationTimestamp", "generation", "deletionTimestamp")


def merge(target: Any, change: Any) -> Any:
    """RFC 7386: null removes, objects merge, everything else replaces."""
    if not isinstance(change, dict):
        return change
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in change.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge(out.get(key), value)
    return out


def differences(old: Any, new: Any, path: str) -> list[str]:
    """The paths of the values that differ; a list is one value."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted({*old, *new})
        return [field for key in keys for field in differences(old.get(key), new.get(key), f"{path}.{key}")]
    return [] if old == new else [path]
