"""By which id `terraform import` finds what a plan would create, for every resource type of the stacks.

The formats are those of the providers' documentation: "Import" at the end of a type's page in
https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs, .../kubernetes/2.38.0/docs, .../helm/3.1.1/docs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpuenv.state.versions import NOT_OURS

# {attribute} is the planned value, {attribute:last} the part after its last slash.
_GOOGLE = {
    "google_artifact_registry_repository": "projects/{project}/locations/{location}/repositories/{repository_id}",
    "google_artifact_registry_repository_iam_member": (
        "projects/{project}/locations/{location}/repositories/{repository:last} {role} {member}"
    ),
    "google_cloud_scheduler_job": "projects/{project}/locations/{region}/jobs/{name}",
    "google_compute_firewall": "projects/{project}/global/firewalls/{name}",
    "google_compute_network": "projects/{project}/global/networks/{name}",
    "google_compute_resource_policy": "projects/{project}/regions/{region}/resourcePolicies/{name}",
    "google_compute_router": "projects/{project}/regions/{region}/routers/{name}",
    "google_compute_router_nat": "projects/{project}/regions/{region}/routers/{router:last}/{name}",
    "google_compute_subnetwork": "projects/{project}/regions/{region}/subnetworks/{name}",
    "google_container_cluster": "projects/{project}/locations/{location}/clusters/{name}",
    "google_container_node_pool": "{project}/{location}/{cluster:last}/{name}",
    "google_project_iam_custom_role": "projects/{project}/roles/{role_id}",
    "google_project_iam_member": "{project} {role} {member}",
    "google_service_account": "projects/{project}/serviceAccounts/{email}",
    "google_service_account_iam_member": "{service_account_id} {role} {member}",
    "google_storage_bucket": "{name}",
    "google_storage_bucket_iam_member": "b/{bucket:last} {role} {member}",
}


@dataclass(frozen=True, kw_only=True)
class Listed:
    """Objects whose id the server gives: they are listed, and found by a name that is theirs to choose.

    `host` and `path` are where, `items` is the field of the answer, `field` an item's name in it, `attribute` the
    name in the plan, and `id_` the field with the server's id, whole or at the end of a name. Who has `role` has the
    `permission` to list them.
    """

    host: str
    path: str
    items: str
    field: str
    attribute: str
    id_: str
    permission: str
    role: str


LISTED = {
    # https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.tensorboards/list
    "google_vertex_ai_tensorboard": Listed(
        host="{region}-aiplatform.googleapis.com",
        path="projects/{project}/locations/{region}/tensorboards",
        items="tensorboards",
        field="displayName",
        attribute="display_name",
        id_="name",
        permission="aiplatform.tensorboards.list",
        role="roles/aiplatform.viewer",
    ),
    # https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.triggers/list
    "google_cloudbuild_trigger": Listed(
        host="cloudbuild.googleapis.com",
        path="projects/{project}/locations/{location}/triggers",
        items="triggers",
        field="name",
        attribute="name",
        id_="id",
        permission="cloudbuild.builds.list",
        role="roles/cloudbuild.builds.viewer",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Planned:
    """An object that a plan would create: `values` are those that are known before."""

    address: str
    type_: str
    values: Mapping[str, Any]

    def text(self, template: str) -> str | None:
        """`template` with the planned values in it; None when one of them is not known yet."""
        found: list[str] = []

        def value(match: re.Match[str]) -> str:
            given = self.values.get(match[1])
            found.append(given if isinstance(given, str) else "")
            return found[-1].rpartition("/")[2] if match[2] else found[-1]

        text = re.sub(r"\{(\w+)(:last)?\}", value, template)
        return text if all(found) else None


def planned(plan: Mapping[str, Any], configuration: Mapping[str, Any]) -> list[Planned]:
    """What a plan (`terraform show -json`) would create and an import could bring, in the plan's order.

    A project, region or location that neither the plan nor the stack's JSON gives is the provider's.
    """
    provider = (configuration.get("provider", {}).get("google") or [{}])[0]
    places = {"project": provider.get("project"), "region": provider.get("region"), "location": provider.get("region")}
    return [
        Planned(address=each["address"], type_=each["type"], values={**places, **_known(each["change"])})
        for each in plan.get("resource_changes", ())
        if each["mode"] == "managed" and each["change"]["actions"] == ["create"] and each["type"] not in NOT_OURS
    ]


def _known(change: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (change.get("after") or {}).items() if value is not None}


def import_id(wanted: Planned) -> str | None:
    """The id; None when it depends on what is not known before something else exists, or is the server's to give.

    Raises KeyError for a type that has no answer here.
    """
    if wanted.type_ in LISTED:
        return None
    if wanted.type_ == "kubernetes_manifest":
        return _manifest(wanted.values.get("manifest") or {})
    if wanted.type_ == "helm_release":
        return wanted.text("{namespace}/{name}")
    if wanted.type_.startswith("kubernetes_"):
        return _kubernetes(wanted.values.get("metadata") or [])
    id_ = wanted.text(_GOOGLE[wanted.type_])
    condition = wanted.values.get("condition") or []
    return f"{id_} {condition[0]['title']}" if id_ and condition else id_


def _manifest(manifest: Mapping[str, Any]) -> str | None:
    metadata = manifest.get("metadata") or {}
    parts = {
        "apiVersion": manifest.get("apiVersion"),
        "kind": manifest.get("kind"),
        "namespace": metadata.get("namespace"),
        "name": metadata.get("name"),
    }
    if not parts["name"]:
        return None
    return ",".join(f"{key}={value}" for key, value in parts.items() if value)


def _kubernetes(metadata: Sequence[Mapping[str, Any]]) -> str | None:
    """Namespaced or not: only an object with a namespace has one in its metadata."""
    (found,) = metadata or [{}]
    if not found.get("name"):
        return None
    return f"{found['namespace']}/{found['name']}" if found.get("namespace") else str(found["name"])


def has_answer(type_: str) -> bool:
    """Whether this knows what to do about a resource type."""
    by_name = ("kubernetes_manifest", "helm_release", *_GOOGLE, *LISTED, *NOT_OURS)
    typed = re.fullmatch(r"kubernetes_(namespace|service_account|(cluster_)?role(_binding)?)_v1", type_)
    return type_ in by_name or typed is not None
