"""What the images of build steps are on this machine: an explicit table. Nothing is taken for an image it is not."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_DIGEST = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}")

# Google's own image with Docker in it: it needs a Docker, which this machine may not have.
DOCKER = "gcr.io/cloud-builders/docker"


class NoSuchImage(Exception):
    """A step asks for an image, or a program of it, that this machine has nothing for."""


@dataclass(frozen=True, kw_only=True)
class Images:
    """The table. `builder` is the reference that the triggers name: the image that cloudbuild/builder.yaml makes, in
    which this project's own setup has installed the same locked packages as into .venv here.
    """

    builder: str

    def program(self, image: str, entrypoint: str) -> Path:
        """The program that starts a step. Raises NoSuchImage."""
        if image == DOCKER:
            raise NoSuchImage(f"{image}: needs Docker, which is not played; only the builder image, {self.builder}, is")
        if not _DIGEST.fullmatch(image):
            raise NoSuchImage(f"{image or 'a step without an image'}: is not an image by its digest (...@sha256:...)")
        if image != self.builder:
            raise NoSuchImage(f"{image}: is not the builder image, {self.builder}")
        programs: Mapping[str, Path] = {"python": Path(sys.executable)}
        if entrypoint not in programs:
            raise NoSuchImage(
                f"{entrypoint or 'no entrypoint'}: of the builder image these are played: {', '.join(programs)}"
            )
        return programs[entrypoint]
