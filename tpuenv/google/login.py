"""Whether this machine has a login for Google: checked before anything else, so that it is reported only once."""

from __future__ import annotations

import os
from pathlib import Path

# The variables that Terraform's Google provider and its backend accept besides application default credentials.
# https://registry.terraform.io/providers/hashicorp/google/latest/docs/guides/provider_reference#authentication
# https://developer.hashicorp.com/terraform/language/backend/gcs#authentication
_VARIABLES = (
    "GOOGLE_OAUTH_ACCESS_TOKEN",
    "GOOGLE_CREDENTIALS",
    "GOOGLE_BACKEND_CREDENTIALS",
    "GOOGLE_CLOUD_KEYFILE_JSON",
    "GCLOUD_KEYFILE_JSON",
)
_FILE_NAME = "application_default_credentials.json"


def require(project_id: str) -> None:
    """Raises Failed where there is no login. Whether Google accepts it is not checked."""
    if is_on_this_machine():
        return
    # Not before it is needed: Google's libraries take a second to load. On a machine of Google's they ask its metadata.
    from tpuenv.google.clients import credentials

    credentials(project_id)


def is_on_this_machine() -> bool:
    """Whether a variable or a file has one. Machines of Google's have another, which is not asked for."""
    return any(os.environ.get(name) for name in _VARIABLES) or _file().is_file()


def _file() -> Path:
    """The file of `gcloud auth application-default login`, unless a variable names another.

    https://cloud.google.com/docs/authentication/application-default-credentials
    """
    if path := os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return Path(path)
    configuration = os.environ.get("CLOUDSDK_CONFIG")
    return (Path(configuration) if configuration else Path.home() / ".config" / "gcloud") / _FILE_NAME
