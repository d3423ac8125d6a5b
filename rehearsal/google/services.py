"""The other Google services: Artifact Registry, Vertex AI, Secret Manager, Logging, Monitoring, Billing."""

from __future__ import annotations

import json
import re

from rehearsal.google.iam import MEMBER_CHECKS, member_resource
from rehearsal.google.locations import region_exists
from rehearsal.google.resource import ApiError, Change, GoogleResource

ARTIFACTS = "artifactregistry.googleapis.com"
VERTEX = "aiplatform.googleapis.com"
SECRETS = "secretmanager.googleapis.com"
LOGGING = "logging.googleapis.com"
MONITORING = "monitoring.googleapis.com"

REPOSITORY = "google_artifact_registry_repository"
REPOSITORY_PATH = "projects/{project}/locations/{location}/repositories/{repository_id}"


def repository_id_is_valid(change: Change) -> None:
    """https://cloud.google.com/artifact-registry/docs/repositories/create-repos"""
    if not re.fullmatch(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?", str(change.values["repository_id"])):
        raise ApiError(400, f"Invalid repository_id '{change.values['repository_id']}'", "badRequest")


def repository_exists(change: Change) -> None:
    """https://cloud.google.com/artifact-registry/docs/access-control"""
    values = change.values
    location = values.get("location") or change.client.settings.get("region")
    name = str(values["repository"])
    if not name.startswith("projects/"):
        name = REPOSITORY_PATH.format(project=change.project, location=location, repository_id=name)
    if change.get(REPOSITORY, name) is None:
        raise ApiError(404, f'Requested entity was not found: "{name}"', "notFound")


def cleanup_policies_are_whole(change: Change) -> None:
    """DELETE takes a condition, KEEP a condition or a number of versions.

    https://cloud.google.com/artifact-registry/docs/repositories/cleanup-policy
    """
    for policy in change.values.get("cleanup_policies") or []:
        if policy.get("action") == "DELETE" and not policy.get("condition"):
            raise ApiError(400, f"Cleanup policy '{policy['id']}' of action DELETE needs a condition", "badRequest")


def dashboard_is_json(change: Change) -> None:
    """https://cloud.google.com/monitoring/dashboards/api-dashboard"""
    try:
        found = json.loads(str(change.values["dashboard_json"]))
    except ValueError as error:
        raise ApiError(400, f"Invalid dashboard: {error}", "badRequest") from error
    if not isinstance(found, dict) or not found.get("displayName"):
        raise ApiError(400, "Field dashboard.displayName must be set", "badRequest")


def channels_exist(change: Change) -> None:
    """https://cloud.google.com/monitoring/alerts/using-channels-api"""
    for name in change.values.get("notification_channels") or []:
        if change.get("google_monitoring_notification_channel", str(name)) is None:
            raise ApiError(404, f"Could not find NotificationChannel {name}", "notFound")


RESOURCE_TYPES = (
    GoogleResource(
        type_=REPOSITORY,
        path=REPOSITORY_PATH,
        word="Repository",
        service=ARTIFACTS,
        exists="the repository already exists",
        checks=(repository_id_is_valid, cleanup_policies_are_whole),
        computed=lambda change: {"name": change.values["repository_id"]},
    ),
    member_resource(
        "google_artifact_registry_repository_iam_member",
        "{project}/{location}/{repository}/{role}/{member}",
        word="artifactregistry repository",
        service=ARTIFACTS,
        checks=(repository_exists, *MEMBER_CHECKS),
    ),
    GoogleResource(
        type_="google_vertex_ai_tensorboard",
        path="projects/{project}/locations/{region}/tensorboards/{number}",
        word="Tensorboard",
        service=VERTEX,
        checks=(region_exists,),
        computed=lambda change: {"name": change.name},
    ),
    GoogleResource(
        type_="google_secret_manager_secret",
        path="projects/{project}/secrets/{secret_id}",
        word="Secret",
        service=SECRETS,
        computed=lambda change: {"name": change.name},
    ),
    GoogleResource(
        type_="google_logging_metric", path="projects/{project}/metrics/{name}", word="Metric", service=LOGGING
    ),
    GoogleResource(
        type_="google_logging_project_sink",
        path="projects/{project}/sinks/{name}",
        word="Logging Project Sink",
        service=LOGGING,
        computed=lambda change: {
            "writer_identity": f"serviceAccount:service-{change.project}@gcp-sa-logging.iam.gserviceaccount.com"
        },
    ),
    GoogleResource(
        type_="google_monitoring_notification_channel",
        path="projects/{project}/notificationChannels/{number}",
        word="NotificationChannel",
        service=MONITORING,
        computed=lambda change: {"name": change.name},
        state_only=("force_delete",),
    ),
    GoogleResource(
        type_="google_monitoring_alert_policy",
        path="projects/{project}/alertPolicies/{number}",
        word="AlertPolicy",
        service=MONITORING,
        checks=(channels_exist,),
        computed=lambda change: {"name": change.name},
    ),
    GoogleResource(
        type_="google_monitoring_dashboard",
        path="projects/{project}/dashboards/{number}",
        word="Dashboard",
        service=MONITORING,
        checks=(dashboard_is_json,),
    ),
    GoogleResource(
        type_="google_billing_budget",
        path="billingAccounts/{billing_account}/budgets/{number}",
        word="Budget",
        service="billingbudgets.googleapis.com",
        computed=lambda change: {"name": change.name.rsplit("/", 1)[-1]},
    ),
)
