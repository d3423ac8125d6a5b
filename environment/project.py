"""Finds the project's folder and files, and loads the environment that they and the process environment describe."""

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
    """The folder of vars.env and fleet.yaml."""
    return Path(os.environ.get(FOLDER) or ROOT).absolute()


def load() -> environment.Environment:
    """The environment that the files and the process environment describe. The caller shows its warnings.

    Raises environment.Refused.
    """
    return environment.load(folder() / "vars.env", os.environ, fleet=folder() / "fleet.yaml")


def load_and_warn() -> environment.Environment:
    """As `load`, with the warnings printed on stderr. Raises environment.Refused."""
    loaded = load()
    for warning in loaded.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return loaded


def load_for_google() -> environment.Environment:
    """As `load_and_warn`, for a command that calls Google Cloud.

    Raises environment.Refused for the example's project too, unless the command runs in a rehearsal.
    """
    loaded = load_and_warn()
    if loaded.settings.project_id == EXAMPLE and not os.environ.get(STORAGE_ENDPOINT):
        raise environment.Refused(
            (f"PROJECT_ID: '{EXAMPLE}' is the example's; set it in vars.env to the id of your Google Cloud project",)
        )
    return loaded
