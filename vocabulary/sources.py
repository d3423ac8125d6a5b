"""Charts, images and other sources that are downloaded and run, by the digest of their content: sources.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

_FILE: Final[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True)
class Source:
    """A chart or an image of an OCI registry. Without a digest, `unpinned` says why."""

    registry: str
    path: str
    version: str
    digest: str = ""
    evidence: str = ""
    unpinned: str = ""

    @property
    def tag(self) -> str:
        """With the digest, by which it is pulled; the version before it is for people."""
        return f"{self.version}@{self.digest}" if self.digest else self.version

    @property
    def by_digest(self) -> str:
        """Where it is, without the version."""
        return f"{self.registry}/{self.path}@{self.digest}"


CHARTS: Final = {name: Source(**row) for name, row in _FILE["charts"].items()}
IMAGES: Final = {name: Source(**row) for name, row in _FILE["images"].items()}
RELEASES: Final[Mapping[str, Mapping[str, str]]] = _FILE["releases"]
LOCKS: Final[tuple[str, ...]] = tuple(_FILE["locks"])
CHECKED_OTHERWISE: Final[Mapping[str, str]] = _FILE["checked_otherwise"]
