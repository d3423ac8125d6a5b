"""The project that a request names as the one that pays its quota: whoever names one has to be allowed to use it.

https://cloud.google.com/docs/quotas/set-quota-project#caller_permission
"""

from __future__ import annotations

from rehearsal.cloud import Cloud
from rehearsal.google import identity
from rehearsal.http_server import HttpError, Request

_USE = "serviceusage.services.use"
HEADER = "x-goog-user-project"


def check(cloud: Cloud, request: Request, *, storage: bool) -> None:
    """Raises HttpError 403, for `storage` in Cloud Storage's own words.

    googleapis/google-cloud-ruby issue 6456; googlecodelabs/feedback issue 1193
    """
    project = request.headers.get(HEADER)
    account = identity.account_of(request.headers.get("authorization", "").removeprefix("Bearer "))
    if not project or account is None:
        return
    if not identity.denied(cloud, account, _USE, f"projects/{project}", project=project):
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
