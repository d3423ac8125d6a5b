"""The versions of `tpuenv` and of what it works with, as they are pinned or installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata

from environment import project
from tpuenv.terraform.stacks import process_environment
from vocabulary.sources import CHARTS

_PACKAGES = {
    "cdktf": "cdktf",
    "google bindings": "cdktf-cdktf-provider-google",
    "kubernetes bindings": "cdktf-cdktf-provider-kubernetes",
    "helm bindings": "cdktf-cdktf-provider-helm",
}


def lines() -> list[str]:
    """A line for each of them: "Kueue 0.19.2"."""
    return [
        f"tpuenv {_first(r'^version = .(.+).$', (project.ROOT / 'pyproject.toml').read_text(encoding='utf-8'))}",
        *(f"{name} {_installed(package)}" for name, package in _PACKAGES.items()),
        f"Kueue {CHARTS['kueue'].version}",
        f"JobSet {CHARTS['jobset'].version}",
        f"Terraform {_terraform()}",
        f"Python {sys.version.split()[0]}",
    ]


def _first(pattern: str, text: str) -> str:
    """The first group of the pattern: Python 3.10 cannot read TOML."""
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else "unknown"


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed: make setup"


def _terraform() -> str:
    """The version of the Terraform, or OpenTofu, that the commands run."""
    try:
        answer = subprocess.run(
            [os.environ.get("TERRAFORM_BINARY_NAME") or "terraform", "version", "-json"],
            env={**process_environment(), "CHECKPOINT_DISABLE": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=30,
        ).stdout
        return str(json.loads(answer)["terraform_version"])
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        return "not found: make setup"
