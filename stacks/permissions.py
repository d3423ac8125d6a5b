"""What the stacks take to deploy and to plan: from the resource types in use to Google's permissions.

One row a type. A type without a row ends the synthesis; a row that no stack can use fails a test. Permissions and what
checks them: https://cloud.google.com/iam/docs/permissions-reference and the pages that the rows name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

CLUSTER_ADMIN = "roles/container.admin"


class UnknownPermissions(Exception):
    """A stack uses resource types that no row describes."""

    def __init__(self, types: Iterable[str]) -> None:
        super().__init__(
            f"stacks/permissions.py: no row for {', '.join(sorted(types))}; write down what it takes to read, make, "
            "change and delete it, so that the pipeline's identities can be given that and no more"
        )


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one resource type, or data source ("data." before its type), takes.

    read     to see it: given to both identities
    write    to make, change and delete it
    data     to change and delete what is in a bucket, and the bucket: limited to the environment's own buckets
    grants   to say who may do what with it: limited to the roles that the stacks grant
    role     where single permissions do not do, a role of Google's in place of `write`
    source   where it is documented
    """

    read: str = ""
    write: str = ""
    data: str = ""
    grants: str = ""
    role: str = ""
    source: str


_GKE = "https://cloud.google.com/kubernetes-engine/docs/reference/api-permissions"
_COMPUTE = "https://cloud.google.com/compute/docs/reference/rest/v1"
_STORAGE = "https://cloud.google.com/storage/docs/access-control/iam-json"
_RBAC = "https://cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control#iam-interaction"

_PROJECT = "resourcemanager.projects.get"
_POOLS = "compute.instanceGroupManagers.get compute.instanceGroupManagers.list"  # the provider reads each pool's

# Charts bring cluster roles and webhooks of their own. Whoever may make those administers the cluster, so the exact
# list would be longer and not less; and there is no permission by name for ValidatingAdmissionPolicies. The plan
# identity reads by Kubernetes' own rules (stacks/plan_access.py).
_IN_CLUSTER = Row(role=CLUSTER_ADMIN, source=_RBAC)

ROWS: Mapping[str, Row] = MappingProxyType(
    {
        "google_project_service": Row(
            read=f"serviceusage.services.get serviceusage.services.list {_PROJECT}",
            write="serviceusage.services.enable serviceusage.operations.get",
            source="https://cloud.google.com/service-usage/docs/access-control",
        ),
        "google_service_account": Row(
            read="iam.serviceAccounts.get",
            write="iam.serviceAccounts.create iam.serviceAccounts.update iam.serviceAccounts.delete",
            source="https://cloud.google.com/iam/docs/service-accounts-create",
        ),
        # Nobody who is bound to custom roles should be able to write them: that would be all permissions at once. A
        # person deploys their changes; the builds see them and may delete them.
        "google_project_iam_custom_role": Row(
            read="iam.roles.get",
            write="iam.roles.delete",
            source="https://cloud.google.com/iam/docs/creating-custom-roles",
        ),
        "google_project_iam_member": Row(
            read=f"{_PROJECT} resourcemanager.projects.getIamPolicy",
            grants="resourcemanager.projects.setIamPolicy",
            source="https://cloud.google.com/iam/docs/setting-limits-on-granting-roles",
        ),
        "google_compute_network": Row(
            read="compute.networks.get compute.globalOperations.get",
            write="compute.networks.create compute.networks.update compute.networks.updatePolicy "
            "compute.networks.delete",
            source=f"{_COMPUTE}/networks/insert#iam-permissions",
        ),
        "google_compute_subnetwork": Row(
            read="compute.subnetworks.get compute.regionOperations.get",
            write="compute.subnetworks.create compute.subnetworks.update compute.subnetworks.delete "
            "compute.subnetworks.expandIpCidrRange compute.subnetworks.setPrivateIpGoogleAccess "
            "compute.networks.updatePolicy",
            source=f"{_COMPUTE}/subnetworks/insert#iam-permissions",
        ),
        "google_compute_router": Row(
            read="compute.routers.get compute.regionOperations.get",
            write="compute.routers.create compute.routers.update compute.routers.delete compute.networks.updatePolicy",
            source=f"{_COMPUTE}/routers/insert#iam-permissions",
        ),
        "google_compute_router_nat": Row(
            read="compute.routers.get compute.regionOperations.get",
            write="compute.routers.update compute.networks.updatePolicy",
            source=f"{_COMPUTE}/routers/patch#iam-permissions",
        ),
        "google_compute_firewall": Row(
            read="compute.firewalls.get compute.globalOperations.get",
            write="compute.firewalls.create compute.firewalls.update compute.firewalls.delete "
            "compute.networks.updatePolicy",
            source=f"{_COMPUTE}/firewalls/insert#iam-permissions",
        ),
        "google_compute_resource_policy": Row(
            read="compute.resourcePolicies.get compute.regionOperations.get",
            write="compute.resourcePolicies.create compute.resourcePolicies.update compute.resourcePolicies.delete",
            source=f"{_COMPUTE}/resourcePolicies/insert#iam-permissions",
        ),
        "google_artifact_registry_repository": Row(
            read="artifactregistry.repositories.get",
            write="artifactregistry.repositories.create artifactregistry.repositories.update "
            "artifactregistry.repositories.delete",
            source="https://cloud.google.com/artifact-registry/docs/access-control#permissions",
        ),
        "google_artifact_registry_repository_iam_member": Row(
            read="artifactregistry.repositories.getIamPolicy",
            grants="artifactregistry.repositories.setIamPolicy",
            source="https://cloud.google.com/artifact-registry/docs/access-control#permissions",
        ),
        "google_vertex_ai_tensorboard": Row(
            # The list is for `tpuenv recover`: their ids are the server's.
            read="aiplatform.tensorboards.get aiplatform.tensorboards.list",
            write="aiplatform.tensorboards.create aiplatform.tensorboards.update aiplatform.tensorboards.delete",
            source="https://cloud.google.com/vertex-ai/docs/general/iam-permissions",
        ),
        # Making a bucket is checked on the project, where a condition on its name does not hold.
        "google_storage_bucket": Row(
            read=f"storage.buckets.get {_PROJECT}",
            write="storage.buckets.create",
            # Before it empties a bucket, the provider asks whether it has caches.
            data="storage.buckets.update storage.buckets.delete storage.objects.list storage.objects.delete "
            "storage.anywhereCaches.list",
            source=_STORAGE,
        ),
        "google_storage_bucket_iam_member": Row(
            read="storage.buckets.getIamPolicy",
            grants="storage.buckets.setIamPolicy",
            source=_STORAGE,
        ),
        "google_container_cluster": Row(
            read=f"container.clusters.get container.clusters.list container.operations.get {_POOLS}",
            write="container.clusters.create container.clusters.update container.clusters.delete "
            "container.operations.list",
            source=_GKE,
        ),
        "google_container_node_pool": Row(
            read=f"container.clusters.get container.operations.get {_POOLS}",
            write="container.clusters.update container.operations.list",
            source=_GKE,
        ),
        "data.google_project": Row(
            read=_PROJECT, source="https://cloud.google.com/resource-manager/docs/access-control"
        ),
        "data.google_service_account": Row(
            read="iam.serviceAccounts.get",
            source="https://cloud.google.com/iam/docs/service-accounts-list-edit",
        ),
        "data.google_container_cluster": Row(
            read=f"container.clusters.get container.clusters.connect {_POOLS}",
            source="https://cloud.google.com/kubernetes-engine/docs/how-to/latest/network-isolation#dns-endpoint",
        ),
        "data.google_client_config": Row(source="it tells the provider's own settings: nothing is asked of Google"),
        "terraform_data": Row(source="it is in the state alone"),
        "helm_release": _IN_CLUSTER,
        "kubernetes_manifest": _IN_CLUSTER,
        "kubernetes_namespace_v1": _IN_CLUSTER,
        "kubernetes_service_account_v1": _IN_CLUSTER,
        "kubernetes_role_v1": _IN_CLUSTER,
        "kubernetes_role_binding_v1": _IN_CLUSTER,
        "kubernetes_cluster_role_v1": _IN_CLUSTER,
        "kubernetes_cluster_role_binding_v1": _IN_CLUSTER,
    }
)


@dataclass(frozen=True, kw_only=True)
class Permissions:
    """What the types of some stacks take together.

    `grants` has, for each permission to set an IAM policy, the roles that the stacks grant there.
    """

    types: tuple[str, ...]
    read: tuple[str, ...]
    write: tuple[str, ...]
    data: tuple[str, ...]
    grants: Mapping[str, tuple[str, ...]]
    roles: tuple[str, ...]


def needed(stacks: Iterable[Mapping[str, Any]]) -> Permissions:
    """Of stacks as Terraform's JSON. Raises UnknownPermissions, and ValueError for a role without a fixed name."""
    used: dict[str, list[Mapping[str, Any]]] = {}
    for stack in stacks:
        for kind, prefix in (("resource", ""), ("data", "data.")):
            for type_, by_id in stack.get(kind, {}).items():
                used.setdefault(prefix + type_, []).extend(by_id.values())
    unknown = used.keys() - ROWS.keys()
    if unknown:
        raise UnknownPermissions(unknown)
    rows = {type_: ROWS[type_] for type_ in used}
    return Permissions(
        types=tuple(sorted(used)),
        read=_together(row.read for row in rows.values()),
        write=_together(row.write for row in rows.values()),
        data=_together(row.data for row in rows.values()),
        grants={
            row.grants: tuple(sorted({_role(resource) for resource in used[type_]}))
            for type_, row in sorted(rows.items())
            if row.grants
        },
        roles=tuple(sorted({row.role for row in rows.values() if row.role})),
    )


def _role(member: Mapping[str, Any]) -> str:
    """A condition lists roles by name, so a role that Terraform knows only after apply cannot be in it."""
    role = str(member["role"])
    if "${" in role:
        raise ValueError(f"stacks/permissions.py: {role} is granted; write the role's name in place of the reference")
    return role


def _together(permissions: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({permission for each in permissions for permission in each.split()}))
