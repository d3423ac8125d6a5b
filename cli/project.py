"""Where the project is, and the environment that its vars.env and the process environment describe."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import environment

ROOT = Path(__file__).resolve().parent.parent


def wanted() -> environment.Environment:
    """The environment, its warnings told on stderr. Raises environment.Refused."""
    found = environment.load(ROOT / "vars.env", os.environ)
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return found
