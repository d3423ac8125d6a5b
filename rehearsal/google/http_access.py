"""Who calls an HTTP API of the fake cloud, and whether IAM lets that account do it. Each raises HttpError."""

from __future__ import annotations

from rehearsal.cloud import Cloud
from rehearsal.google import permissions
from rehearsal.http_server import HttpError, Request

_USE = "serviceusage.services.use"
_QUOTA_PROJECT = "x-goog-user-project"


def caller(request: Request) -> str:
    """The account whose token the request has; HttpError 401 without one."""
    account = _account(request)
    if account is None:
        raise HttpError(401, "Request had invalid authentication credentials.")
    return account


def permit(cloud: Cloud, account: str, permission: str, resource: str, *, project: str) -> None:
    """HttpError 403 where the account may not use the permission on the resource of that full name."""
    if why := permissions.denied(cloud, account, permission, resource, project=project):
        raise HttpError(403, why)


def check_quota_project(cloud: Cloud, request: Request, *, storage: bool) -> None:
    """HttpError 403 where the caller may not use the project that the request names as the one whose quota it takes;
    for `storage` in Cloud Storage's own words.

    https://cloud.google.com/docs/quotas/set-quota-project#caller_permission
    The words: googleapis/google-cloud-ruby issue 6456; googlecodelabs/feedback issue 1193
    """
    project, account = request.headers.get(_QUOTA_PROJECT), _account(request)
    if not project or account is None:
        return
    if not permissions.denied(cloud, account, _USE, f"projects/{project}", project=project):
        return
    if storage:
        raise HttpError(403, f"{account} does not have {_USE} access to the Google Cloud project.")
    raise HttpError(
        403,
        f"Caller does not have required permission to use project {project}. Grant the caller the "
        f"roles/serviceusage.serviceUsageConsumer role, or a custom role with the {_USE} permission, by visiting "
        f"https://console.developers.google.com/iam-admin/iam/project?project={project} and then retry. Propagation "
        "of the new permission may take a few minutes.",
    )


def _account(request: Request) -> str | None:
    return permissions.account_of(request.headers.get("authorization", "").removeprefix("Bearer "))
