"""Whether anything on this machine tells Google who asks: found out before anything is begun, and so said once."""

from __future__ import annotations

import os
from pathlib import Path

# What Terraform's Google provider and its backend take besides application default credentials.
# https://registry.terraform.io/providers/hashicorp/google/latest/docs/guides/provider_reference#authentication
# https://developer.hashicorp.com/terraform/language/backend/gcs#authentication
_GIVEN = (
    "GOOGLE_OAUTH_ACCESS_TOKEN",
    "GOOGLE_CREDENTIALS",
    "GOOGLE_BACKEND_CREDENTIALS",
    "GOOGLE_CLOUD_KEYFILE_JSON",
    "GCLOUD_KEYFILE_JSON",
)
_NAME = "application_default_credentials.json"


def require(project_id: str) -> None:
    """Raises Failed where there is no login. Whether Google accepts the one that there is, only Google can say."""
    if any(os.environ.get(name) for name in _GIVEN) or _file().is_file():
        return
    # Not before it is needed: Google's libraries take a second to load. They ask a Google machine who it is, too.
    from tpuenv.google.clients import credentials

    credentials(project_id)


def _file() -> Path:
    """Where `gcloud auth application-default login` keeps what it got, unless another place is named.

    https://cloud.google.com/docs/authentication/application-default-credentials
    """
    if named := os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return Path(named)
    configuration = os.environ.get("CLOUDSDK_CONFIG")
    return (Path(configuration) if configuration else Path.home() / ".config" / "gcloud") / _NAME
