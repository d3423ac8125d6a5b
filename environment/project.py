"""Where the project is, and the environment that its files and the process environment describe."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import environment

ROOT = Path(__file__).resolve().parent.parent


# Names the folder of vars.env and fleet.yaml, where one checkout serves several environments.
FOLDER = "TPUENV_FOLDER"

# PROJECT_ID in the vars.env that comes with the project.
EXAMPLE = "my-project"

# The variable with the endpoint of Cloud Storage, where it is not Google's: only a rehearsal and tests set it.
# https://developer.hashicorp.com/terraform/language/backend/gcs
STORAGE_ENDPOINT = "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT"


def folder() -> Path:
    """Where vars.env and fleet.yaml are."""
    return Path(os.environ.get(FOLDER) or ROOT).absolute()


def loaded() -> environment.Environment:
    """The environment. Whoever calls shows its warnings. Raises environment.Refused."""
    return environment.load(folder() / "vars.env", os.environ, fleet=folder() / "fleet.yaml")


def wanted() -> environment.Environment:
    """What is `loaded`, its warnings told on stderr. Raises environment.Refused."""
    found = loaded()
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return found


def real() -> environment.Environment:
    """What is `wanted`, for a command that goes to Google Cloud: not the example's project, unless it is played."""
    found = wanted()
    if found.settings.project_id == EXAMPLE and not os.environ.get(STORAGE_ENDPOINT):
        raise environment.Refused(
            (f"PROJECT_ID: '{EXAMPLE}' is the example's; set it in vars.env to the id of your Google Cloud project",)
        )
    return found
