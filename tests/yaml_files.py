"""The YAML files that tests are made of, read by the parser in C where PyYAML has it: ten times as fast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def documents(path: Path) -> list[Any]:
    """The values of all documents of a file."""
    return documents_in(path.read_text(encoding="utf-8"))


def documents_in(text: str) -> list[Any]:
    return list(yaml.load_all(text, Loader=_LOADER))
