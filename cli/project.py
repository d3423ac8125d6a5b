"""Where the project is, and the environment that its files and the process environment describe."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import environment

ROOT = Path(__file__).resolve().parent.parent


# Names the folder of vars.env and fleet.yaml, where one checkout serves several environments.
FOLDER = "TPUENV_FOLDER"


def folder() -> Path:
    """Where vars.env and fleet.yaml are."""
    return Path(os.environ.get(FOLDER) or ROOT).absolute()


def wanted() -> environment.Environment:
    """The environment, its warnings told on stderr. Raises environment.Refused."""
    found = environment.load(folder() / "vars.env", os.environ, fleet=folder() / "fleet.yaml")
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return found
