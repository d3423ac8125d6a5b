"""What the caller may do in the project: every permission that Terraform's calls for the environment take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from environment import Environment
from tpuenv.preflight.question import Answers, Check, Question
from tpuenv.preflight.row import Row, compared
from vocabulary.printable import counted, listed
from vocabulary.resource_types import DATA, all_types, facts_of

# By the beginning of a permission, the longest first: the role of Google's that has all of them that are used here.
# https://cloud.google.com/iam/docs/roles-permissions
_ROLES = {
    "iam.serviceAccounts.actAs": "roles/iam.serviceAccountUser",
    "iam.serviceAccounts.": "roles/iam.serviceAccountAdmin",
    "iam.roles.": "roles/iam.roleAdmin",
    "aiplatform.": "roles/aiplatform.admin",
    "artifactregistry.": "roles/artifactregistry.admin",
    "cloudbuild.": "roles/cloudbuild.builds.editor",
    "cloudscheduler.": "roles/cloudscheduler.admin",
    "compute.": "roles/compute.admin",
    "container.": "roles/container.admin",
    "dns.": "roles/dns.admin",
    "monitoring.": "roles/monitoring.editor",
    "resourcemanager.": "roles/resourcemanager.projectIamAdmin",
    "serviceusage.": "roles/serviceusage.serviceUsageAdmin",
    "storage.": "roles/storage.admin",
    "tpu.": "roles/tpu.admin",
}

_ALL = "roles/owner"  # has those of every other API

# What creating the cluster roles of charts takes, and cluster roles are all that needs roles/container.admin.
# https://cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control#iam-rolebinding-bootstrap
_IN_THE_CLUSTER = ("container.clusterRoles.create", "container.clusterRoles.escalate", "container.clusterRoles.bind")

# What `tpuenv bootstrap` calls, beside the types of the stacks.
BOOTSTRAP = (
    *(f"serviceusage.services.{verb}" for verb in ("get", "list", "enable")),
    *(f"storage.buckets.{verb}" for verb in ("create", "get", "list", "update")),
)

# What `tpuenv images --build` takes: to start a build, to act as its account, to use the bucket of its source and log.
# https://cloud.google.com/build/docs/securing-builds/configure-user-specified-service-accounts
IMAGE_BUILDS = (
    "cloudbuild.builds.create",
    "cloudbuild.builds.get",
    "iam.serviceAccounts.actAs",
    "storage.buckets.get",
    "storage.objects.create",
    "storage.objects.get",
)


def _types(environment: Environment) -> Iterator[str]:
    """The resource types of Google's that some stack of the environment has."""
    settings = environment.settings
    pipeline, vms = bool(settings.build_repository), bool(environment.tpu_vms)
    present = {
        "google_cloudbuild_trigger": pipeline,
        "google_cloud_scheduler_job": pipeline,
        "google_dns_managed_zone": settings.egress == "google",
        "google_dns_record_set": settings.egress == "google",
        "google_tpu_v2_vm": vms,
        "google_compute_firewall": vms or bool(settings.control_plane_cidr),
        "google_compute_resource_policy": any(group.slice.needs_workload_policy for group in environment.groups),
        "google_container_node_pool": not settings.autopilot,
        "google_monitoring_dashboard": settings.observability,
        "google_monitoring_alert_policy": settings.observability,
        "google_monitoring_notification_channel": settings.observability and bool(settings.alert_emails),
    }
    yield from (
        type_ for type_ in all_types() if type_.removeprefix(DATA).startswith("google_") and present.get(type_, True)
    )


def needed(environment: Environment) -> Mapping[str, tuple[str, ...]]:
    """By role: the permissions that it takes to create, change and delete the environment, sorted."""
    permissions = {*_IN_THE_CLUSTER, *BOOTSTRAP, *IMAGE_BUILDS}
    for type_ in _types(environment):
        of_type, listing = facts_of(type_).permissions, facts_of(type_).listing
        permissions |= {name for verb in ("read", "create", "update", "delete") for name in of_type.of(verb)}
        permissions |= {"iam.serviceAccounts.actAs"} if of_type.acts_as else set()
        permissions |= {listing.permission} if listing else set()
    return _by_role(permissions)


def of_bootstrap() -> Mapping[str, tuple[str, ...]]:
    """As `needed`, of `tpuenv bootstrap`."""
    return _by_role(set(BOOTSTRAP))


def _by_role(permissions: set[str]) -> Mapping[str, tuple[str, ...]]:
    by_role: dict[str, list[str]] = {}
    for permission in sorted(permissions):
        role = next((role for beginning, role in _ROLES.items() if permission.startswith(beginning)), _ALL)
        by_role.setdefault(role, []).append(permission)
    return {role: tuple(names) for role, names in by_role.items()}


def question(environment: Environment, role: str, permissions: tuple[str, ...]) -> Question:
    """https://cloud.google.com/resource-manager/reference/rest/v3/projects/testIamPermissions"""
    return Question(
        host="cloudresourcemanager.googleapis.com",
        path=f"/v3/projects/{environment.settings.project_id}:testIamPermissions",
        permission="resourcemanager.projects.get",
        role=role,
        tested=permissions,
    )


def rows_of(by_role: Mapping[str, tuple[str, ...]], environment: Environment, answers: Answers) -> Iterator[Row]:
    for role, permissions in by_role.items():
        answer = answers[question(environment, role, permissions)]
        what, need = role.removeprefix("roles/"), counted(len(permissions), "permission")
        if answer.why:
            yield answer.unknown(what, need)
            continue
        # Google leaves the key out where the caller has none.
        lacking = sorted(set(permissions) - {str(name) for name in answer.body.get("permissions", [])})
        have = f"without {listed(lacking)}" if lacking else "all"
        yield compared(what, need, have, ok=not lacking, fix=answer.fix)


def _questions(environment: Environment) -> Iterator[Question]:
    yield from (question(environment, *group) for group in needed(environment).items())


def _rows(environment: Environment, answers: Answers) -> Iterator[Row]:
    yield from rows_of(needed(environment), environment, answers)


CHECK = Check("permissions", _questions, _rows)
