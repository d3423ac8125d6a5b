"""Projects and their APIs; what the provider tells about itself."""

from __future__ import annotations

import re
from typing import Any

from rehearsal.cloud import Attributes, Cloud
from rehearsal.google.identity import hour_of, token_of
from rehearsal.google.resource import PROJECT, SERVICE, ApiError, Change, GoogleResource, may
from rehearsal.terraform.resource_type import Client, Refusal

SERVICE_USAGE = "serviceusage.googleapis.com"
RESOURCE_MANAGER = "cloudresourcemanager.googleapis.com"


def make_project(cloud: Cloud, project: str, *, number: str, services: list[str]) -> None:
    """A project with some APIs on, as whoever administers it would leave it."""
    cloud.put(PROJECT, f"projects/{project}", {"project_id": project, "number": number, "name": project})
    for service in services:
        name = f"projects/{project}/services/{service}"
        cloud.put(SERVICE, name, {"id": f"{project}/{service}", "project": project, "service": service})


def service_name_is_valid(change: Change) -> None:
    """The provider takes names like compute.googleapis.com.

    https://cloud.google.com/service-usage/docs/list-services
    """
    service = str(change.values["service"])
    if not re.fullmatch(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)*\.(googleapis\.com|goog)", service):
        raise ApiError(403, f"Not found or permission denied for service(s): {service}.", "forbidden")


def goes_off(change: Change) -> None:
    """Destroying switches the API off only with `disable_on_destroy`, whose default is true.

    https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/resources/google_project_service
    """
    if (change.prior or {}).get("disable_on_destroy") is False:
        change.client.cloud.put(
            SERVICE, change.name, {key: change.values.get(key) for key in ("id", "project", "service")}
        )


RESOURCE_TYPES = (
    GoogleResource(
        type_=SERVICE,
        path="projects/{project}/services/{service}",
        word="Project Service",
        service=SERVICE_USAGE,
        checks=(service_name_is_valid,),
        computed=lambda change: {"id": f"{change.project}/{change.values['service']}"},
        state_only=("disable_on_destroy", "disable_dependent_services", "check_if_service_has_usage_on_destroy"),
        merges=True,
        gone=goes_off,
    ),
)


class Project:
    """data.google_project"""

    type_ = "google_project"

    def read(self, client: Client, config: Attributes) -> Attributes:
        project = config.get("project_id") or client.settings.get("project")
        try:
            may(client, "data.google_project", "read", {"project": project})
        except ApiError as error:
            raise Refusal(f"Error reading Project: {error.text}") from error
        found = client.cloud.get(PROJECT, f"projects/{project}")
        if found is None:
            raise Refusal(
                f"Error reading Project: googleapi: Error 403: no permission on projects/{project}, forbidden"
            )
        return config | {
            "id": f"projects/{project}",
            "project_id": project,
            "name": found["name"],
            "number": found["number"],
        }


class ClientConfig:
    """data.google_client_config"""

    type_ = "google_client_config"

    def read(self, client: Client, config: Attributes) -> Attributes:
        settings: dict[str, Any] = client.settings
        place = {key: settings.get(key) for key in ("project", "region", "zone")}
        id_ = f'projects/"{place["project"]}"/regions/"{place["region"]}"/zones/"{place["zone"] or ""}"'
        return (
            config
            | place
            | {
                "id": id_,
                "access_token": settings.get("access_token") or token_of(client.account, hour=hour_of(client.cloud)),
                "default_labels": settings.get("default_labels"),
            }
        )


DATA_SOURCES = (Project(), ClientConfig())
