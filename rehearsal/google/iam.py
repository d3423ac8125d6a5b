"""Service accounts, roles, and members of roles."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from rehearsal.cloud import Attributes
from rehearsal.google import conditions, identity
from rehearsal.google.project import RESOURCE_MANAGER
from rehearsal.google.resource import PROJECT, ApiError, Change, Check, GoogleResource, may, one
from rehearsal.terraform.resource_type import Client, Refusal
from rehearsal.terraform.values import Unknown

IAM = "iam.googleapis.com"
ACCOUNT = "google_service_account"
ROLE = identity.ROLE
CLUSTER = "google_container_cluster"

ACCOUNT_PATH = "projects/{project}/serviceAccounts/{account_id}@{project}.iam.gserviceaccount.com"

# https://cloud.google.com/iam/docs/principal-identifiers
_MEMBER = re.compile(
    r"(?:user|group|domain|serviceAccount|principal|principalSet|projectOwner|projectEditor|projectViewer):.+"
)
_POOL = re.compile(
    r"principal(?:Set)?://iam\.googleapis\.com/projects/([^/]+)/locations/global/workloadIdentityPools/([^/]+)/.+"
)

# Roles that exist for buckets and objects only.
# https://cloud.google.com/storage/docs/access-control/iam-roles#legacy-roles
_BUCKET_ROLES = re.compile(r"roles/storage\.legacy(?:Bucket|Object)\w+")


def account_id_is_valid(change: Change) -> None:
    """6 to 30 lower-case letters, digits and dashes. https://cloud.google.com/iam/docs/service-accounts-create"""
    id_ = str(change.values["account_id"])
    if not re.fullmatch(r"[a-z](?:[-a-z0-9]{4,28}[a-z0-9])", id_):
        raise ApiError(
            400, f"Invalid service account id '{id_}': it must be 6 to 30 characters of [a-z0-9-]", "badRequest"
        )


def email(values: Attributes, client: Client) -> str:
    """https://cloud.google.com/iam/docs/service-account-overview#service-account-credentials"""
    project = values.get("project")
    if not project or isinstance(project, Unknown):
        project = client.settings.get("project")
    return f"{values['account_id']}@{project}.iam.gserviceaccount.com"


def account_known(client: Client, planned: Attributes) -> Attributes:
    """The provider plans what follows from the id (`resourceServiceAccountCustomDiff`)."""
    if isinstance(planned["account_id"], Unknown):
        return {}
    address = email(planned, client)
    return {"email": address, "member": f"serviceAccount:{address}"}


def account_values(change: Change) -> Attributes:
    number = int(hashlib.sha256(change.name.encode()).hexdigest()[:15], 16)
    return {"id": change.name, "name": change.name, "unique_id": str(10**20 + number)}


def grants_go(change: Change) -> None:
    """Who may act as an account is written on it, and goes with it: an account of the same name is another one.

    https://cloud.google.com/iam/docs/service-accounts-delete-undelete
    """
    for item in change.client.cloud.find("google_service_account_iam_member", prefix=f"{change.name}/"):
        change.client.cloud.delete(item.kind, item.name)


def member_is_valid(change: Change) -> None:
    """https://cloud.google.com/iam/docs/principal-identifiers"""
    member = str(change.values["member"])
    if not _MEMBER.fullmatch(member) and member not in ("allUsers", "allAuthenticatedUsers"):
        raise ApiError(400, f"Invalid value for IAM member: '{member}'", "badRequest")


def member_account_exists(change: Change) -> None:
    """A member that is a service account must exist.

    https://cloud.google.com/iam/docs/troubleshoot-policies#service-account-not-exist
    """
    member = str(change.values["member"])
    match = re.fullmatch(r"serviceAccount:([^@]+)@([^.]+)\.iam\.gserviceaccount\.com", member)
    if match is None:
        return
    project = match.group(2)
    if change.get(PROJECT, f"projects/{project}") is None or project.startswith("gcp-sa-"):
        return  # an agent of Google's, or another project's: the rehearsal has only this one
    name = ACCOUNT_PATH.format(account_id=match.group(1), project=project)
    if change.get(ACCOUNT, name) is None:
        raise ApiError(
            400, f"Service account {match.group(1)}@{project}.iam.gserviceaccount.com does not exist.", "badRequest"
        )


def identity_pool_exists(change: Change) -> None:
    """A project's pool PROJECT.svc.id.goog comes with its first cluster that has Workload Identity, not before.

    https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity#workload_identity_pool
    """
    member = str(change.values["member"])
    match = _POOL.fullmatch(member)
    old_form = re.fullmatch(r"serviceAccount:([^\[]+\.svc\.id\.goog)\[[^/]+/[^/]+\]", member)
    if match is None and old_form is None:
        return
    pool = match.group(2) if match is not None else old_form.group(1) if old_form is not None else ""
    owner = pool.removesuffix(".svc.id.goog")
    project = change.get(PROJECT, f"projects/{owner}") or {}
    if not pool.endswith(".svc.id.goog") or not _has_pool(change, owner):
        raise ApiError(
            400,
            f"Identity Pool does not exist ({pool}). Please check that you specified a valid resource name as returned"
            " in the `name` attribute in the configuration API.",
            "badRequest",
        )
    if match is not None and match.group(1) != project.get("number"):
        raise ApiError(
            400, f"Invalid principal {member}: project {match.group(1)} has no identity pool {pool}", "badRequest"
        )


def _has_pool(change: Change, project: str) -> bool:
    return any(
        (item.attributes.get("workload_identity_config") or [{}])[0].get("workload_pool") == f"{project}.svc.id.goog"
        for item in change.client.cloud.find(CLUSTER)
    )


def role_exists(change: Change) -> None:
    """A custom role of a project must be there; a predefined one is named roles/... .

    https://cloud.google.com/iam/docs/roles-overview
    """
    role = str(change.values["role"])
    if role.startswith("projects/"):
        if change.get(ROLE, role) is None:
            raise ApiError(400, f"Role {role} is not supported for this resource.", "badRequest")
    elif not re.fullmatch(r"roles/[\w.]+|organizations/\d+/roles/[\w.]+", role):
        raise ApiError(400, f"Role {role} is not supported for this resource.", "badRequest")


def role_is_for_projects(change: Change) -> None:
    """Legacy bucket roles cannot be granted on a project.

    https://cloud.google.com/storage/docs/access-control/iam-roles#legacy-roles
    """
    if _BUCKET_ROLES.fullmatch(str(change.values["role"])):
        raise ApiError(400, f"Role {change.values['role']} is not supported for this resource.", "badRequest")


def account_of_member_exists(change: Change) -> None:
    """Who may act as a service account is written on the account.

    https://cloud.google.com/iam/docs/manage-access-service-accounts
    """
    name = str(change.values["service_account_id"])
    if change.get(ACCOUNT, name) is None:
        raise ApiError(404, f"Unknown service account: {name}", "notFound")


def role_id_is_valid(change: Change) -> None:
    """3 to 64 letters, digits, underscores and periods. https://cloud.google.com/iam/docs/creating-custom-roles"""
    id_ = str(change.values["role_id"])
    if not re.fullmatch(r"[a-zA-Z0-9_.]{3,64}", id_):
        raise ApiError(400, f"The role_id '{id_}' is invalid: 3 to 64 of letters, digits, '_' and '.'", "badRequest")


def permissions_are_valid(change: Change) -> None:
    """service.resource.verb. https://cloud.google.com/iam/docs/permissions-reference"""
    for permission in change.values.get("permissions") or []:
        if not re.fullmatch(r"[a-z][\w-]*\.\w+\.\w+", str(permission)):
            raise ApiError(400, f"Permission {permission} is not valid.", "badRequest")


def condition_is_valid(change: Change) -> None:
    """A condition is an expression, of at most so many operators.

    https://cloud.google.com/iam/docs/conditions-overview#limits
    """
    expression = str(one(change.values, "condition").get("expression") or "")
    why = identity.valid(expression) if expression else ""
    if why:
        raise ApiError(400, f"Error in expression {expression!r}: {why}", "badRequest")
    if expression and conditions.operators(expression) > conditions.MOST_OPERATORS:
        raise ApiError(400, f"the condition has more than {conditions.MOST_OPERATORS} logical operators", "badRequest")


MEMBER_CHECKS: tuple[Check, ...] = (
    member_is_valid,
    member_account_exists,
    identity_pool_exists,
    role_exists,
    condition_is_valid,
)


def member_resource(
    type_: str, path: str, *, word: str, service: str, checks: Sequence[Check] = MEMBER_CHECKS
) -> GoogleResource:
    """A `*_iam_member`: adding a member again is no error, and everything about it forces replacement."""
    return GoogleResource(
        type_=type_, path=path, word=f"IAM policy for {word}", service=service, checks=checks, merges=True
    )


RESOURCE_TYPES = (
    GoogleResource(
        type_=ACCOUNT,
        path=ACCOUNT_PATH,
        word="service account",
        service=IAM,
        exists="Service account {last} already exists within project.",
        checks=(account_id_is_valid,),
        known=account_known,
        computed=account_values,
        gone=grants_go,
        state_only=("create_ignore_already_exists",),
    ),
    GoogleResource(
        type_=ROLE,
        path="projects/{project}/roles/{role_id}",
        word="the custom project role",
        service=IAM,
        checks=(role_id_is_valid, permissions_are_valid),
        computed=lambda change: {"name": change.name, "deleted": False},
    ),
    member_resource(
        "google_project_iam_member",
        "{project}/{role}/{member}",
        word="project",
        service=RESOURCE_MANAGER,
        checks=(*MEMBER_CHECKS, role_is_for_projects),
    ),
    member_resource(
        "google_service_account_iam_member",
        "{service_account_id}/{role}/{member}",
        word="service account",
        service=IAM,
        checks=(account_of_member_exists, *MEMBER_CHECKS),
    ),
)


class ServiceAccount:
    """data.google_service_account"""

    type_ = ACCOUNT

    def read(self, client: Client, config: Attributes) -> Attributes:
        project = str(config.get("project") or client.settings.get("project"))
        id_ = str(config["account_id"]).rpartition("/")[2]
        email = id_ if "@" in id_ else f"{id_}@{project}.iam.gserviceaccount.com"
        name = f"projects/{project}/serviceAccounts/{email}"
        try:
            may(client, f"data.{self.type_}", "read", {"project": project, "account_id": email})
        except ApiError as error:
            raise Refusal(f'Error when reading or editing Service Account "{name}": {error.text}') from error
        found = client.cloud.get(ACCOUNT, name)
        if found is None:
            raise Refusal(f"{name} not found")
        told = ("id", "name", "email", "unique_id", "member", "display_name", "disabled")
        return config | {key: found.get(key) for key in told}


DATA_SOURCES = (ServiceAccount(),)
