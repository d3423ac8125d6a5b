"""The triggers that Terraform has created in the fake cloud, and which of them an event starts.

https://cloud.google.com/build/docs/automating-builds/create-manage-triggers
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.cloud import Attributes, Cloud
from rehearsal.terraform.values import block_at, value_at

TRIGGER = "google_cloudbuild_trigger"


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """A trigger: where it is, its file, what it gives the build, whom the build runs as, whether a person must agree.

    `push` and `pull_request` are regular expressions of branches, empty where such an event starts nothing. With
    `on_comment`, a pull request starts it when a collaborator comments /gcbrun, and not by itself.
    """

    path: str
    name: str
    location: str
    file: str
    account: str
    substitutions: Mapping[str, str]
    approval: bool
    push: str = ""
    pull_request: str = ""
    on_comment: bool = False
    repository: str = ""


def triggers(cloud: Cloud) -> list[Trigger]:
    """All that exist, in order of creation."""
    return [described(item.attributes, path=item.name) for item in cloud.find(TRIGGER)]


def trigger(cloud: Cloud, name: str) -> Trigger:
    """The one of that short or full name. Raises KeyError."""
    for candidate in triggers(cloud):
        if name.rpartition("/")[2] in (candidate.name, candidate.path.rpartition("/")[2]):
            return candidate
    raise KeyError(name)


def started_by(cloud: Cloud, event: str, branch: str) -> list[Trigger]:
    """Those that an event on a branch starts: "push", "pull_request" of a collaborator or, of which that is the base
    branch, "comment" /gcbrun. A comment starts all that pull requests start, also those that need none.

    https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.triggers#CommentControl
    """
    if event == "pull_request":
        return [trigger for trigger in started_by(cloud, "comment", branch) if not trigger.on_comment]
    patterns = [(each, each.push if event == "push" else each.pull_request) for each in triggers(cloud)]
    return [trigger for trigger, pattern in patterns if pattern and re.search(pattern, branch)]


def described(values: Attributes, *, path: str = "") -> Trigger:
    """The trigger of the resource's attributes, or of what a stack says of it before it is created."""
    event, source = block_at(values, "repository_event_config"), block_at(values, "git_file_source")
    return Trigger(
        path=path,
        name=str(values["name"]),
        location=str(values.get("location") or "global"),
        file=str(values.get("filename") or source.get("path") or ""),
        account=str(values.get("service_account") or "").rpartition("/")[2],
        substitutions={key: str(value) for key, value in (values.get("substitutions") or {}).items()},
        approval=bool(value_at(values, "approval_config.approval_required")),
        push=_branch(block_at(event, "push")),
        pull_request=_branch(block_at(event, "pull_request")),
        on_comment=block_at(event, "pull_request").get("comment_control") == "COMMENTS_ENABLED",
        repository=str(event.get("repository") or source.get("repository") or ""),
    )


def _branch(event: Mapping[str, Any]) -> str:
    return str(event.get("branch") or "")
