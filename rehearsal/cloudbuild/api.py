"""Builds over Cloud Build's REST API: a trigger is run, which starts another build, and a build is read.

https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.triggers/run
https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.builds/get
"""

from __future__ import annotations

import json
import re

from rehearsal.cloud import Cloud
from rehearsal.cloudbuild import builds, triggers
from rehearsal.cloudbuild.triggers import Trigger
from rehearsal.google.http_access import caller, permit
from rehearsal.http_server import HttpError, Request, Response, json_response

_RUN = re.compile(r"/v1/(projects/([^/]+)/locations/[^/]+/triggers/[^/:]+):run")
_GET = re.compile(r"/v1/(projects/([^/]+)/locations/[^/]+/builds/[^/:]+)")


def serves(path: str) -> bool:
    return bool(_RUN.fullmatch(path) or _GET.fullmatch(path))


def serve(cloud: Cloud, request: Request) -> Response:
    """The operation that holds the new build, or a build; raises HttpError."""
    account = caller(request)
    if request.method == "POST" and (match := _RUN.fullmatch(request.path)):
        return _run(cloud, request, account, *match.groups())
    if request.method == "GET" and (match := _GET.fullmatch(request.path)):
        return _get(cloud, account, *match.groups())
    raise HttpError(404, "Not Found")


def _get(cloud: Cloud, account: str, name: str, project: str) -> Response:
    permit(cloud, account, "cloudbuild.builds.get", name, project=project)
    build = cloud.get(builds.BUILD, name)
    if build is None:
        raise HttpError(404, f"Requested entity was not found: {name}")
    return json_response(build)


def _run(cloud: Cloud, request: Request, account: str, name: str, project: str) -> Response:
    permit(cloud, account, "cloudbuild.builds.create", name, project=project)
    trigger = _find(cloud, name)
    # https://cloud.google.com/build/docs/securing-builds/configure-user-specified-service-accounts
    runs_as = f"projects/{project}/serviceAccounts/{trigger.account}"
    permit(cloud, account, "iam.serviceAccounts.actAs", runs_as, project=project)
    source = json.loads(request.body or b"{}").get("source") or {}
    build = builds.ask(
        cloud,
        trigger,
        commit=str(source.get("commitSha") or ""),
        branch=str(source.get("branchName") or ""),
        substitutions=source.get("substitutions") or {},
    )
    return json_response(
        {
            "name": f"operations/build/{project}/{build.id_}",
            "metadata": {
                "@type": "type.googleapis.com/google.devtools.cloudbuild.v1.BuildOperationMetadata",
                "build": cloud.get(builds.BUILD, build.path),
            },
        }
    )


def _find(cloud: Cloud, name: str) -> Trigger:
    """By its name or its id, in its own location and no other."""
    location = name.rpartition("/")[0]
    try:
        trigger = triggers.trigger(cloud, name)
    except KeyError:
        trigger = None
    if trigger is None or trigger.path.rpartition("/")[0] != location:
        raise HttpError(404, f"Requested entity was not found: {name}")
    return trigger
