"""The settings as this repository is published with them; its owner may have changed vars.env since."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from environment.project import EXAMPLE, ROOT
from environment.settings.model import Settings

_VARS_ENV = ROOT / "vars.env"


def vars_env() -> str:
    """vars.env with every value as it was published: its default, and the example's project."""
    text = _VARS_ENV.read_text(encoding="utf-8")
    for field in dataclasses.fields(Settings):
        key = field.name.upper()
        value = EXAMPLE if key == "PROJECT_ID" else field.metadata["default"]
        text = re.sub(rf"^{key}=.*$", f"{key}={value}", text, flags=re.MULTILINE)
    return text


def folder(path: Path) -> Path:
    """A folder with that vars.env and no fleet.yaml, for TPUENV_FOLDER."""
    (path / "vars.env").write_text(vars_env(), encoding="utf-8")
    return path
