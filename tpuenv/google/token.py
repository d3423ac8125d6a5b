"""An access token of the account that Terraform's Google provider acts as, by the variables that the provider reads.

https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/guides/provider_reference#authentication
"""

from __future__ import annotations

import json
import os
import warnings
from datetime import datetime
from typing import Any

from tpuenv.failure import Failed

with warnings.catch_warnings():
    # Google's libraries announce on import that they will stop supporting older Pythons; not this command's business.
    warnings.simplefilter("ignore", FutureWarning)
    import google.auth
    from google.auth import impersonated_credentials
    from google.auth.exceptions import GoogleAuthError
    from google.auth.transport.requests import Request

# With the email, by which the roles of a cluster know an account.
# https://cloud.google.com/kubernetes-engine/docs/how-to/api-server-authentication
SCOPES = ("https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email")

_KEYS = ("GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON")


def access_token() -> tuple[str, datetime | None]:
    """A token, and when it ends (UTC) where that is known. Raises Failed where there is no login, or Google has none
    for it.
    """
    if given := os.environ.get("GOOGLE_OAUTH_ACCESS_TOKEN"):
        return given, None
    try:
        with warnings.catch_warnings():
            # That a file of an unknown kind may be somebody else's: this one the person has named.
            warnings.simplefilter("ignore", DeprecationWarning)
            login = _login()
        if account := os.environ.get("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"):
            login = impersonated_credentials.Credentials(login, account, list(SCOPES))  # type: ignore[no-untyped-call]
        login.refresh(Request())
    except (GoogleAuthError, ValueError, OSError) as error:
        words = " ".join(str(error).split())[:300]
        raise Failed(
            f"credentials: no token from this machine's login ({words}); run `gcloud auth application-default login`, "
            "then this again"
        ) from error
    return str(login.token), login.expiry


def _login() -> Any:
    """Of the variables the first that is set; its value is a key, or the path of a file with one."""
    auth: Any = google.auth  # its loaders carry no types
    given = next((value for name in _KEYS if (value := os.environ.get(name, "").strip())), "")
    if given.startswith("{"):
        return auth.load_credentials_from_dict(json.loads(given), scopes=SCOPES)[0]
    if given:
        return auth.load_credentials_from_file(os.path.expanduser(given), scopes=SCOPES)[0]
    return auth.default(scopes=SCOPES)[0]
