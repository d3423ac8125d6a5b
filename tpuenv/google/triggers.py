"""Asks for approval: runs a Cloud Build trigger again for the same commit, whose build waits for a person."""

from __future__ import annotations

import re
from typing import Any

from tpuenv.failure import Failed
from tpuenv.google.clients import Clients

_ROLE = "roles/cloudbuild.builds.editor"


def trigger_name(trigger: str, *, project_id: str, location: str) -> str:
    """The full name of a trigger, from its full or short one."""
    return trigger if "/" in trigger else f"projects/{project_id}/locations/{location}/triggers/{trigger}"


def run_trigger(clients: Clients, *, trigger: str, commit: str) -> str:
    """Runs the trigger (full name) for `commit`, and gives the page where its build is approved. Raises Failed.

    https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations.triggers/run
    """
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise Failed(f"COMMIT_SHA: '{commit}' is no commit to run the trigger for; set it to the one that is deployed")
    body: dict[str, Any] = {
        "projectId": clients.project_id,
        "triggerId": trigger.rpartition("/")[2],
        "source": {"commitSha": commit},
    }
    url = f"{clients.api_url('cloudbuild.googleapis.com')}/v1/{trigger}:run"
    with clients.asking(f"run trigger {trigger}", permission="cloudbuild.builds.create", role=_ROLE):
        build = clients.request("POST", url, json=body).json()["metadata"]["build"]
    if page := build.get("logUrl"):
        return str(page)
    region = re.sub(r".*/locations/([^/]+)/.*", r"\1", trigger)
    return (
        f"https://console.cloud.google.com/cloud-build/builds;region={region}/{build['id']}"
        f"?project={clients.project_id}"
    )
