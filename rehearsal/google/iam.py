"""Service accounts, roles, and members of roles."""

from __future__ import annotations

import hashlib
import re

from rehearsal.cloud import Attributes
from rehearsal.google import conditions, permissions
from rehearsal.google.errors import bad_request, not_found, require
from rehearsal.google.names import place
from rehearsal.google.resource import (
    PROJECT,
    Change,
    Check,
    GoogleDataSource,
    GoogleResource,
    Reference,
    matches,
)
from rehearsal.terraform.resource_type import Client
from rehearsal.terraform.values import Unknown, value_at

ACCOUNT = "google_service_account"
ROLE = permissions.ROLE
CLUSTER = "google_container_cluster"

ACCOUNT_BY_EMAIL = "projects/{project}/serviceAccounts/{email}"

# https://cloud.google.com/iam/docs/principal-identifiers
_MEMBER = (
    r"(?:user|group|domain|serviceAccount|principal|principalSet|projectOwner|projectEditor|projectViewer):.+"
    r"|allUsers|allAuthenticatedUsers"
)
_POOL = re.compile(
    r"principal(?:Set)?://iam\.googleapis\.com/projects/(?P<number>[^/]+)/locations/global"
    r"/workloadIdentityPools/(?P<pool>[^/]+)/.+"
)
_POOL_IN_OLD_FORM = re.compile(r"serviceAccount:(?P<pool>[^\[]+\.svc\.id\.goog)\[[^/]+/[^/]+\]")
_UNSUPPORTED = "Role {} is not supported for this resource."


def _email(client: Client, values: Attributes) -> str:
    """https://cloud.google.com/iam/docs/service-account-overview#service-account-credentials"""
    return f"{values['account_id']}@{place(client, values)['project']}.iam.gserviceaccount.com"


def account_known(client: Client, planned: Attributes) -> Attributes:
    """The provider plans what follows from the id (`resourceServiceAccountCustomDiff`)."""
    if isinstance(planned["account_id"], Unknown):
        return {}
    email = _email(client, planned)
    return {"email": email, "member": f"serviceAccount:{email}"}


def account_values(change: Change) -> Attributes:
    number = int(hashlib.sha256(change.name.encode()).hexdigest()[:15], 16)
    return {"id": change.name, "name": change.name, "unique_id": str(10**20 + number)}


def delete_grants(change: Change) -> None:
    """Who may act as an account is stored with it and deleted with it: an account of the same name is another one.

    https://cloud.google.com/iam/docs/service-accounts-delete-undelete
    """
    for item in change.client.cloud.find("google_service_account_iam_member", prefix=f"{change.name}/"):
        change.client.cloud.delete(item.kind, item.name)


def member_account_exists(change: Change) -> None:
    """A member that is a service account must exist.

    https://cloud.google.com/iam/docs/troubleshoot-policies#service-account-not-exist
    """
    match = re.fullmatch(r"serviceAccount:([^@]+@([^.]+)\.iam\.gserviceaccount\.com)", str(change.values["member"]))
    if match is None:
        return
    email, project = match.groups()
    if change.get(PROJECT, f"projects/{project}") is None or project.startswith("gcp-sa-"):
        return  # an agent of Google's, or another project's: the rehearsal has only this one
    exists = change.get(ACCOUNT, ACCOUNT_BY_EMAIL.format(project=project, email=email)) is not None
    require(exists, f"Service account {email} does not exist.")


def identity_pool_exists(change: Change) -> None:
    """A project's pool PROJECT.svc.id.goog comes with its first cluster that has Workload Identity, not before.

    https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity#workload_identity_pool
    """
    member = str(change.values["member"])
    match = _POOL.fullmatch(member) or _POOL_IN_OLD_FORM.fullmatch(member)
    if match is None:
        return
    pool, number = match["pool"], match.groupdict().get("number")
    project = change.get(PROJECT, f"projects/{pool.removesuffix('.svc.id.goog')}") or {}
    clusters = change.client.cloud.find(CLUSTER)
    require(
        any(value_at(cluster.attributes, "workload_identity_config.workload_pool") == pool for cluster in clusters),
        f"Identity Pool does not exist ({pool}). Please check that you specified a valid resource name as returned"
        " in the `name` attribute in the configuration API.",
    )
    same = number in (None, project.get("number"))
    require(same, f"Invalid principal {member}: project {number} has no identity pool {pool}")


def role_exists(change: Change) -> None:
    """A custom role of a project must be there; a predefined one is named roles/... .

    https://cloud.google.com/iam/docs/roles-overview
    """
    role = str(change.values["role"])
    custom = role.startswith("projects/") and change.get(ROLE, role) is not None
    predefined = re.fullmatch(r"roles/[\w.]+|organizations/\d+/roles/[\w.]+", role)
    require(custom or predefined, _UNSUPPORTED.format(role))


def permissions_are_valid(change: Change) -> None:
    """service.resource.verb. https://cloud.google.com/iam/docs/permissions-reference"""
    for permission in change.values.get("permissions") or []:
        valid = re.fullmatch(r"[a-z][\w-]*\.\w+\.\w+", str(permission))
        require(valid, f"Permission {permission} is not valid.")


def condition_is_valid(change: Change) -> None:
    """A condition is an expression with at most 12 logical operators.

    https://cloud.google.com/iam/docs/conditions-overview#limits
    """
    expression = str(value_at(change.values, "condition.expression") or "")
    if not expression:
        return
    if why := permissions.valid(expression):
        raise bad_request(f"Error in expression {expression!r}: {why}")
    most = conditions.MOST_OPERATORS
    require(conditions.operators(expression) <= most, f"the condition has more than {most} logical operators")


MEMBER_CHECKS: tuple[Check, ...] = (
    matches("member", _MEMBER, "Invalid value for IAM member: '{}'"),
    member_account_exists,
    identity_pool_exists,
    role_exists,
    condition_is_valid,
)


def member_resource(type_: str, *checks: Check) -> GoogleResource:
    """A `*_iam_member` with checks besides those of all: adding a member again is no error."""
    return GoogleResource(type_=type_, checks=(*checks, *MEMBER_CHECKS), merges=True)


RESOURCE_TYPES = (
    GoogleResource(
        type_=ACCOUNT,
        checks=(
            # https://cloud.google.com/iam/docs/service-accounts-create
            matches(
                "account_id",
                r"[a-z](?:[-a-z0-9]{4,28}[a-z0-9])",
                "Invalid service account id '{}': it must be 6 to 30 characters of [a-z0-9-]",
            ),
        ),
        known=account_known,
        computed=account_values,
        deleted=delete_grants,
        state_only=("create_ignore_already_exists",),
    ),
    GoogleResource(
        type_=ROLE,
        checks=(
            # https://cloud.google.com/iam/docs/creating-custom-roles
            matches(
                "role_id",
                r"[a-zA-Z0-9_.]{3,64}",
                "The role_id '{}' is invalid: 3 to 64 of letters, digits, '_' and '.'",
            ),
            permissions_are_valid,
        ),
        computed=lambda change: {"name": change.name, "deleted": False},
    ),
    GoogleResource(type_="google_project_iam_audit_config", merges=True),  # what the service had is replaced
    member_resource(
        "google_project_iam_member",
        # Legacy roles of buckets and objects cannot be granted on a project.
        # https://cloud.google.com/storage/docs/access-control/iam-roles#legacy-roles
        matches("role", r"(?!roles/storage\.legacy(?:Bucket|Object)).*", _UNSUPPORTED),
    ),
    member_resource(
        "google_service_account_iam_member",
        # https://cloud.google.com/iam/docs/manage-access-service-accounts
        Reference(
            attribute="service_account_id",
            type_=ACCOUNT,
            missing=lambda name: not_found(f"Unknown service account: {name}"),
        ),
    ),
)


def _account_of_data_source(client: Client, config: Attributes) -> Attributes:
    """`account_id` may be an id, an email, or a full name."""
    id_ = str(config["account_id"]).rpartition("/")[2]
    return {"account_id": id_ if "@" in id_ else _email(client, {**config, "account_id": id_})}


DATA_SOURCES = (
    GoogleDataSource(
        type_=ACCOUNT,
        stored_as=ACCOUNT,
        template="projects/{project}/serviceAccounts/{account_id}",
        noun='Error when reading or editing Service Account "{name}"',
        known=_account_of_data_source,
        answer=("name", "email", "unique_id", "member", "display_name", "disabled"),
    ),
)
