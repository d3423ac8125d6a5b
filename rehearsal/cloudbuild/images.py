"""What the images of build steps are on this machine: an explicit table. Nothing is taken for an image it is not."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vocabulary.sources import IMAGES

# What a step may call by its name: nothing else of this machine (make, git, curl) is in the image.
_PROGRAMS = Path(__file__).with_name("image_programs.txt")

_DIGEST = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}")

# Google's own image with Docker in it: it needs a Docker, which this machine may not have.
DOCKER = IMAGES["docker"].by_digest


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
            raise NoSuchImage(
                f"{image}: needs Docker, which is not supported; only the builder image is: {self.builder}"
            )
        if not _DIGEST.fullmatch(image):
            raise NoSuchImage(f"{image or 'a step without an image'}: is not an image by its digest (...@sha256:...)")
        if image != self.builder:
            raise NoSuchImage(f"{image}: is not the builder image, {self.builder}")
        programs: Mapping[str, Path] = {"python": Path(sys.executable)}
        if entrypoint not in programs:
            raise NoSuchImage(
                f"{entrypoint or 'no entrypoint'}: of the builder image these are supported: {', '.join(programs)}"
            )
        return programs[entrypoint]

    def path(self, folder: Path, *, terraform: str) -> str:
        """The PATH of a step: .venv/bin, and the new `folder` with links to this machine's programs of those names."""
        folder.mkdir()
        (folder / "terraform").symlink_to(terraform)
        names = [line for line in _PROGRAMS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        for name in " ".join(names).split():
            if program := shutil.which(name):
                (folder / name).symlink_to(program)
        return os.pathsep.join([str(Path(sys.executable).parent), str(folder)])
