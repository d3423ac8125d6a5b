"""Builds in the fake cloud: asked for by a trigger, waiting for an approval, run, and over.

A build is an object of the cloud with the fields of Cloud Build's REST resource, so that a build that another one has
asked for over HTTP is here as well. https://cloud.google.com/build/docs/api/reference/rest/v1/projects.builds
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from rehearsal.cloud import Attributes, Cloud
from rehearsal.cloudbuild.triggers import Trigger
from rehearsal.google.resource import PROJECT

BUILD = "cloudbuild_build"
PENDING, QUEUED, WORKING = "PENDING", "QUEUED", "WORKING"


@dataclass(frozen=True, kw_only=True)
class Build:
    """A build as it is in the cloud. `path` is its name in full."""

    path: str
    id_: str
    status: str
    trigger: str
    commit: str
    branch: str
    substitutions: Mapping[str, str] = field(default_factory=dict)


def ask(
    cloud: Cloud, trigger: Trigger, *, commit: str, branch: str = "", substitutions: Mapping[str, str] | None = None
) -> Build:
    """A new build of a trigger: it waits for an approval, if the trigger requires one, and is queued otherwise.

    `substitutions` are given for this build and win over the trigger's.
    """
    id_ = str(uuid.uuid4())
    path = f"{trigger.path.rpartition('/triggers/')[0]}/builds/{id_}"
    attributes: Attributes = {
        "id": id_,
        "status": PENDING if trigger.approval else QUEUED,
        "buildTriggerId": trigger.path.rpartition("/")[2],
        "createTime": _now(),
        "serviceAccount": f"projects/{path.split('/')[1]}/serviceAccounts/{trigger.account}",
        "source": {"commitSha": commit, "branchName": branch},
        "substitutions": {**trigger.substitutions, **(substitutions or {})},
    }
    if trigger.approval:
        attributes["approval"] = {"state": "PENDING", "config": {"approvalRequired": True}}
    cloud.put(BUILD, path, attributes)
    return _build(path, attributes)


def builds(cloud: Cloud, *, status: str = "") -> list[Build]:
    """All builds, or those of one status, oldest first."""
    all_builds = [_build(item.name, item.attributes) for item in cloud.find(BUILD)]
    return [build for build in all_builds if status in ("", build.status)]


def approve(cloud: Cloud, build: Build) -> Build:
    """A person agrees to a build that waits for it, and it is queued. Raises ValueError for one that does not wait."""

    def edit(attributes: Attributes) -> None:
        if attributes["status"] != PENDING:
            raise ValueError(f"build {build.id_} does not wait for an approval: it is {attributes['status']}")
        attributes["status"] = QUEUED
        attributes["approval"]["state"] = "APPROVED"

    return _changed(cloud, build, edit)


def moved(cloud: Cloud, build: Build, status: str) -> Build:
    """The build with another status."""
    return _changed(cloud, build, lambda attributes: attributes.update(status=status))


def built_in(cloud: Cloud, build: Build, trigger: Trigger) -> dict[str, str]:
    """The values of the built-in substitutions. Those that this build has no value for are left out."""
    project = build.path.split("/")[1]
    stored = cloud.get(PROJECT, f"projects/{project}") or {}
    return {
        "PROJECT_ID": project,
        "PROJECT_NUMBER": str(stored.get("number", "")),
        "BUILD_ID": build.id_,
        "LOCATION": trigger.location,
        "TRIGGER_NAME": trigger.name,
        "COMMIT_SHA": build.commit,
        "REVISION_ID": build.commit,
        "SHORT_SHA": build.commit[:7],
        "REPO_NAME": trigger.repository.rpartition("/")[2],
        "BRANCH_NAME": build.branch,
        "REF_NAME": build.branch,
        "TRIGGER_BUILD_CONFIG_PATH": trigger.file,
        "SERVICE_ACCOUNT_EMAIL": trigger.account,
        "SERVICE_ACCOUNT": f"projects/{project}/serviceAccounts/{trigger.account}",
    }


def _changed(cloud: Cloud, build: Build, edit: Callable[[Attributes], None]) -> Build:
    cloud.change(BUILD, build.path, edit)
    return _build(build.path, cloud.get(BUILD, build.path) or {})


def _build(path: str, attributes: Attributes) -> Build:
    source = attributes.get("source") or {}
    return Build(
        path=path,
        id_=attributes["id"],
        status=attributes["status"],
        trigger=attributes["buildTriggerId"],
        commit=source.get("commitSha", ""),
        branch=source.get("branchName", ""),
        substitutions=attributes.get("substitutions") or {},
    )


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
