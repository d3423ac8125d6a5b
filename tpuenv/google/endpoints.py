"""The endpoints of Google's services: Google's own, or those of the variables that Terraform's providers read."""

from __future__ import annotations

import os
import re

from environment.project import STORAGE_ENDPOINT

# By the end of a service's host name: Vertex AI has one for each region.
# https://registry.terraform.io/providers/hashicorp/google/latest/docs/guides/provider_reference#custom_endpoint
_VARIABLES = {
    "storage.googleapis.com": STORAGE_ENDPOINT,
    "aiplatform.googleapis.com": "GOOGLE_VERTEX_AI_CUSTOM_ENDPOINT",
    "cloudbuild.googleapis.com": "GOOGLE_CLOUD_BUILD_CUSTOM_ENDPOINT",
    "artifactregistry.googleapis.com": "GOOGLE_ARTIFACT_REGISTRY_CUSTOM_ENDPOINT",
    "container.googleapis.com": "GOOGLE_CONTAINER_CUSTOM_ENDPOINT",
    "compute.googleapis.com": "GOOGLE_COMPUTE_CUSTOM_ENDPOINT",
    "cloudresourcemanager.googleapis.com": "GOOGLE_RESOURCE_MANAGER_V3_CUSTOM_ENDPOINT",
    "serviceusage.googleapis.com": "GOOGLE_SERVICE_USAGE_CUSTOM_ENDPOINT",
    "cloudbilling.googleapis.com": "GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT",
    "orgpolicy.googleapis.com": "GOOGLE_ORG_POLICY_CUSTOM_ENDPOINT",
    "cloudquotas.googleapis.com": "GOOGLE_CLOUD_QUOTAS_CUSTOM_ENDPOINT",
    "monitoring.googleapis.com": "GOOGLE_MONITORING_CUSTOM_ENDPOINT",
}


def url(host: str) -> str:
    """The start of a service's URLs, for its host name: "https://storage.googleapis.com". No slash at the end.

    The variables hold it together with the API's version: "http://127.0.0.1:8080/storage/v1/".
    """
    variable = next((name for end, name in _VARIABLES.items() if host.endswith(end)), "")
    endpoint = os.environ.get(variable, "") if variable else ""
    return re.sub(r"(/storage|/compute)?(/v[0-9][a-z0-9]*)?/*$", "", endpoint) or f"https://{host}"


def storage() -> dict[str, str]:
    """The options of Cloud Storage's client."""
    return {"api_endpoint": url("storage.googleapis.com")} if os.environ.get(STORAGE_ENDPOINT) else {}
