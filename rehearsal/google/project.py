"""Projects and their APIs; the settings of the provider as a data source."""

from __future__ import annotations

from rehearsal.cloud import Attributes, Cloud
from rehearsal.google.errors import forbidden
from rehearsal.google.resource import PROJECT, SERVICE, Change, GoogleDataSource, GoogleResource, matches
from rehearsal.terraform.resource_type import Client


def create_project(cloud: Cloud, project: str, *, number: str, services: list[str]) -> None:
    """A project with some APIs on, as its administrator would leave it."""
    cloud.put(PROJECT, f"projects/{project}", {"project_id": project, "number": number, "name": project})
    for service in services:
        name = f"projects/{project}/services/{service}"
        cloud.put(SERVICE, name, {"id": f"{project}/{service}", "project": project, "service": service})


def stays_on(change: Change) -> None:
    """Destroying switches the API off only with `disable_on_destroy`, whose default is true.

    https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/resources/google_project_service
    """
    if (change.prior or {}).get("disable_on_destroy") is False:
        kept = {key: change.values.get(key) for key in ("id", "project", "service")}
        change.client.cloud.put(SERVICE, change.name, kept)


def _project(client: Client, config: Attributes) -> Attributes:
    return dict.fromkeys(("project", "project_id"), config.get("project_id") or client.settings.get("project"))


RESOURCE_TYPES = (
    GoogleResource(
        type_=SERVICE,
        checks=(
            # The provider takes names like compute.googleapis.com.
            # https://cloud.google.com/service-usage/docs/list-services
            matches(
                "service",
                r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)*\.(googleapis\.com|goog)",
                "Not found or permission denied for service(s): {}.",
                forbidden,
            ),
        ),
        computed=lambda change: {"id": f"{change.project}/{change.values['service']}"},
        state_only=("disable_on_destroy", "disable_dependent_services", "check_if_service_has_usage_on_destroy"),
        merges=True,
        deleted=stays_on,
    ),
)

DATA_SOURCES = (
    GoogleDataSource(
        type_="google_project",
        stored_as=PROJECT,
        template="projects/{project_id}",
        noun="Error reading Project",
        missing="Error reading Project: googleapi: Error 403: no permission on {name}, forbidden",
        known=_project,
        answer=("project_id", "name", "number"),
    ),
)
