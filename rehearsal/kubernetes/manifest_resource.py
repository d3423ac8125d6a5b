"""`kubernetes_manifest`: any object, planned against the live API as the provider does.

Source of its behaviour: manifest/provider of hashicorp/terraform-provider-kubernetes 2.38.0.
"""

from __future__ import annotations

import copy
from typing import Any

from rehearsal.cloud import Attributes
from rehearsal.kubernetes.api import Api
from rehearsal.kubernetes.cluster_access import Authorized
from rehearsal.kubernetes.controllers import holders
from rehearsal.kubernetes.objects import Object
from rehearsal.kubernetes.provider_access import cluster_api
from rehearsal.kubernetes.resources import CRD, Resource
from rehearsal.kubernetes.status import Status
from rehearsal.terraform.planning import Path
from rehearsal.terraform.resource_type import Client, Refusal
from rehearsal.terraform.schemas import Block
from rehearsal.terraform.values import UNKNOWN, Dynamic, is_known, plain, type_of

# What the API server adds. (`RemoveServerSideFields` of the provider)
_SERVERS = (
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "selfLink",
    "generation",
    "managedFields",
    "deletionTimestamp",
)

# Compared with the live object no more once they are set. .../docs/resources/manifest#computed-fields
_COMPUTED_FIELDS = ("metadata.annotations", "metadata.labels")

# What identifies an object, in a manifest. (`PlanResourceChange` of the provider)
_IDENTITY = (("apiVersion",), ("kind",), ("metadata", "namespace"), ("metadata", "name"))

_NO_KIND = "API did not recognize GroupVersionKind from manifest (CRD may not be installed)"


class Manifest:
    type_ = "kubernetes_manifest"

    def forces(self, prior: Attributes, planned: Attributes) -> list[Path]:
        """An object with another identity is another object."""
        before, after = _identity(prior.get("manifest")), _identity(planned.get("manifest"))
        return [("manifest", *place) for place, old, new in zip(_IDENTITY, before, after, strict=True) if old != new]

    def plan(self, client: Client, block: Block, prior: Attributes | None, planned: Attributes) -> Attributes:
        if not is_known(planned["manifest"]):
            return planned | {"object": UNKNOWN}
        manifest = plain(planned["manifest"])
        api = cluster_api(client, client.settings)
        if isinstance(api, Authorized):
            api.authorize("list", CRD, "")  # where the provider reads the schema of what is to be planned
        self._resource(api, manifest)
        if prior is None or _identity(prior["manifest"]) != _identity(planned["manifest"]):
            return planned | {"object": UNKNOWN}
        live = plain(prior["object"])
        merged = applied(live, plain(prior["manifest"]), manifest)
        for path in planned.get("computed_fields") or _COMPUTED_FIELDS:
            _keep(merged, live, plain(prior["manifest"]), manifest, str(path).split("."))
        return planned if merged == live else planned | {"object": Dynamic(type_of(merged), merged)}

    def read(self, client: Client, block: Block, state: Attributes) -> Attributes | None:
        body = plain(state["object"] if state.get("object") is not None else state["manifest"])
        api = cluster_api(client, client.settings)
        try:
            resource = api.resource(body["apiVersion"], body["kind"])
        except Status as status:
            raise Refusal("Failed to determine GroupVersionResource for manifest", status.message) from status
        try:
            live = visible(api.get(resource, *_place(resource, body)))
        except Status:
            return None
        if state.get("object") is not None and live == plain(state["object"]):
            return state
        manifest = state["manifest"] if state.get("manifest") is not None else Dynamic(type_of(live), live)
        return state | {"manifest": manifest, "object": Dynamic(type_of(live), live)}

    def create(self, client: Client, block: Block, planned: Attributes) -> Attributes:
        manifest = plain(planned["manifest"])
        api = cluster_api(client, client.settings)
        resource = self._resource(api, manifest)
        name = _words(resource, manifest)
        try:
            api.create(manifest)
        except Status as status:
            if status.reason == "AlreadyExists":
                raise Refusal(
                    "Cannot create resource that already exists", f'resource "{name}" already exists'
                ) from status
            raise Refusal(f'PATCH for resource "{name}" failed to apply', status.message) from status
        return self._settled(api, resource, planned)

    def update(self, client: Client, block: Block, prior: Attributes, planned: Attributes) -> Attributes:
        manifest = plain(planned["manifest"])
        api = cluster_api(client, client.settings)
        resource = self._resource(api, manifest)
        name = _words(resource, manifest)
        try:
            if prior["manifest"] is not None and plain(prior["manifest"]).get("spec") and manifest.get("spec") == {}:
                # Server-side apply in Kubernetes 1.34.1 makes null of a spec whose last field goes (tried).
                words = 'spec: Invalid value: "null": spec in body must be of type object: "null"'
                raise Status(422, f'{manifest["kind"]} "{manifest["metadata"]["name"]}" is invalid: {words}')
            live = api.get(resource, *_place(resource, manifest))
            merged = applied(live, plain(prior["manifest"]), manifest)
            conflicts = [] if _forces(planned) else api.foreign_changes(live, merged)
            if conflicts:
                fields = "".join(f"\n- {field}" for field in conflicts)
                raise Refusal(
                    f'There was a field manager conflict when trying to apply the manifest for "{name}"',
                    f"The API returned the following conflict: Apply failed with {len(conflicts)} conflict(s):"
                    f'{fields}\n\nYou can override this conflict by setting "force_conflicts" to true in the'
                    ' "field_manager" block.',
                )
            api.update(merged, owner=True)
        except Status as status:
            raise Refusal(f'PATCH for resource "{name}" failed to apply', status.message) from status
        return self._settled(api, resource, planned)

    def delete(self, client: Client, block: Block, prior: Attributes) -> None:
        body = plain(prior["object"])
        api = cluster_api(client, client.settings)
        resource = self._resource(api, body)
        try:
            left = api.delete(resource, *_place(resource, body))
        except Status:
            return
        if left is not None:
            # The provider would wait for its delete timeout; what the wait is for does not change by itself here.
            raise Refusal(
                f'Timed out when waiting for resource "{body["metadata"]["name"]}" to be deleted',
                f"{_words(resource, body)} is terminating: {'; '.join(holders(api, left))}.",
            )

    def find(self, client: Client, id_: str) -> Attributes:
        """ "apiVersion=v1,kind=Namespace,namespace=..,name=default". The real provider asks for the object at once."""
        parts = dict(part.partition("=")[::2] for part in id_.split(","))
        if not {"apiVersion", "kind", "name"} <= parts.keys():
            raise Refusal(f"Failed to parse import ID {id_!r}", 'Use "apiVersion=..,kind=..,name=..[,namespace=..]"')
        metadata = {key: parts[key] for key in ("name", "namespace") if key in parts}
        body = {"apiVersion": parts["apiVersion"], "kind": parts["kind"], "metadata": metadata}
        api = cluster_api(client, client.settings)
        resource = self._resource(api, body)
        if not api.exists(resource, *_place(resource, body)):
            words = f'{resource.qualified} "{parts["name"]}" not found'
            raise Refusal(f"Failed to get resource {{Object:map{metadata}}} from API", words)
        return {"object": Dynamic(type_of(body), body), "manifest": Dynamic(type_of(body), body)}

    @staticmethod
    def _resource(api: Api, manifest: Object) -> Resource:
        try:
            return api.resource(manifest["apiVersion"], manifest["kind"])
        except Status as status:
            raise Refusal(_NO_KIND, status.message) from status

    def _settled(self, api: Api, resource: Resource, planned: Attributes) -> Attributes:
        manifest = plain(planned["manifest"])
        live = api.get(resource, *_place(resource, manifest))
        known, result = planned["object"], visible(live)
        state = planned | {"object": known if is_known(known) and known else Dynamic(type_of(result), result)}
        refused = _not_met(live, planned, _words(resource, manifest))
        if refused:
            raise Refusal("Operation timed out", refused, left=state)
        return state


def visible(body: Object) -> Object:
    """An object without what the server adds."""
    out = copy.deepcopy(body)
    out.pop("status", None)
    out["metadata"] = {key: value for key, value in out["metadata"].items() if key not in _SERVERS}
    return out


def applied(live: Object, before: Object, after: Object) -> Object:
    """Server-side apply: `after` over what is there, without what `before` had and `after` has no more."""
    out = copy.deepcopy(live)
    for key in set(before) - set(after):
        out.pop(key, None)
    for key, value in after.items():
        there, old = out.get(key), before.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            out[key] = applied(there, old if isinstance(old, dict) else {}, value)
        else:
            out[key] = copy.deepcopy(value)
    return out


def _keep(merged: Object, live: Object, before: Object, after: Object, path: list[str]) -> None:
    """Leave a computed field as it is in the cluster unless the manifest itself changed there."""
    *parents, last = path
    inside: list[Any] = [merged, live, before, after]
    for name in parents:
        inside = [item.get(name) if isinstance(item, dict) else None for item in inside]
    new, there, old, asked = inside
    if not isinstance(new, dict) or (old or {}).get(last) != (asked or {}).get(last):
        return
    if isinstance(there, dict) and last in there:
        new[last] = there[last]
    else:
        new.pop(last, None)


def _not_met(live: Object, planned: Attributes, name: str) -> str:
    """The `wait.condition` that does not hold, in words. Nothing here changes by waiting, so nobody waits."""
    for wait in planned.get("wait") or []:
        for condition in wait.get("condition") or []:
            has = [item for item in live.get("status", {}).get("conditions", []) if item["type"] == condition["type"]]
            if not has or has[0]["status"] != condition["status"]:
                state = f"it is {has[0]['status']}: {has[0].get('message', '')}" if has else "there is none"
                return (
                    f"Terraform timed out waiting on the operation to complete: {name} should have condition"
                    f" {condition['type']}={condition['status']}, but {state}"
                )
    return ""


def _forces(planned: Attributes) -> bool:
    return any(item.get("force_conflicts") for item in planned.get("field_manager") or [])


def _identity(manifest: Any) -> tuple[Any, ...]:
    body = plain(manifest) if manifest is not None else {}
    metadata = body.get("metadata") or {}
    return body.get("apiVersion"), body.get("kind"), metadata.get("namespace"), metadata.get("name")


def _place(resource: Resource, body: Object) -> tuple[str, str]:
    metadata = body["metadata"]
    return (str(metadata.get("namespace") or "default") if resource.namespaced else ""), str(metadata["name"])


def _words(resource: Resource, body: Object) -> str:
    namespace, name = _place(resource, body)
    return f"{namespace}/{name}" if namespace else name
