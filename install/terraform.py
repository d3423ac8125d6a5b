"""Terraform: the one on PATH if it is new enough, else OpenTofu, else the pinned release, checked by its digest."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import shlex
import shutil
import subprocess
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

from install.steps import Layout, SetupError, write_program

MINIMUM = (1, 6)

RELEASE = "1.11.4"
# terraform_1.11.4_SHA256SUMS, as also pinned by HashiCorp's Homebrew formula of that version.
SHA256 = {
    "linux_amd64": "1ce994251c00281d6845f0f268637ba50c0005657eb3cf096b92f753b42ef4dc",
    "linux_arm64": "a43d1d0da9b9bab214a8305a39db0e40869572594ccf50c416a7756499143633",
    "darwin_amd64": "a56d5002b9f7647291faccc3dd1a70350e60fb61e4c45037629508b8fdc2575b",
    "darwin_arm64": "867e0808fa971217043e25b7a792b10720c79b1546f8a68479b74f138be73e18",
}
_SILENT = 15  # seconds without an answer: with no way to the internet some machines just wait
DOWNLOADS = "https://releases.hashicorp.com/terraform"
ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A Terraform or OpenTofu on PATH, and the version that it reports."""

    program: Path
    version: tuple[int, ...]
    words: str

    @property
    def is_new_enough(self) -> bool:
        return self.version >= MINIMUM


def inputs(layout: Layout) -> list[str]:
    """What decides which Terraform is used: those on PATH, with their sizes and times of change."""
    inputs = [str(layout.root), RELEASE]
    for program in _on_path(layout):
        state = program.stat()
        inputs.append(f"{program} {state.st_size} {state.st_mtime_ns}")
    return inputs


def install(layout: Layout) -> str:
    """Puts a Terraform at `layout.terraform` and returns which one. Raises SetupError when there is none to be had."""
    unusable = []
    for program in _on_path(layout):
        candidate = _ask_version(program)
        if candidate is None:
            unusable.append(f"{program} does not run")
        elif not candidate.is_new_enough:
            unusable.append(f"{program} is {candidate.words}")
        else:
            # Not a link: version managers put a script there that finds itself by its own path.
            write_program(layout.terraform, f'#!/bin/sh\nexec {shlex.quote(str(program))} "$@"\n')
            return f"{candidate.words} ({program})"
    try:
        _download(layout)
    except SetupError as error:
        minimum = ".".join(map(str, MINIMUM))
        known = f" ({'; '.join(unusable)})" if unusable else ""
        raise SetupError(
            f"needs Terraform or OpenTofu {minimum} or newer on PATH{known}, and {error}. Install one: "
            f"developer.hashicorp.com/terraform/install or opentofu.org/docs/intro/install, then try again"
        ) from error
    return f"Terraform v{RELEASE} (downloaded)"


def _on_path(layout: Layout) -> list[Path]:
    """Terraform before OpenTofu; never our own `.venv/bin/terraform`, which an activated environment has on PATH."""
    folders = [
        folder
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if folder and os.path.realpath(folder) != os.path.realpath(layout.bin)
    ]
    programs = (shutil.which(name, path=os.pathsep.join(folders)) for name in ("terraform", "tofu"))
    return [Path(program).absolute() for program in programs if program]


def _ask_version(program: Path) -> Candidate | None:
    try:
        answer = subprocess.run(
            [program, "version", "-json"],
            env={**os.environ, "CHECKPOINT_DISABLE": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        words = str(json.loads(answer)["terraform_version"])
        version = tuple(int(part) for part in words.split("-")[0].split("."))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None
    name = "OpenTofu" if program.name == "tofu" else "Terraform"
    return Candidate(program=program, version=version, words=f"{name} v{words}")


def _download(layout: Layout) -> None:
    kind = f"{platform.system().lower()}_{ARCHITECTURES.get(platform.machine().lower(), platform.machine())}"
    if kind not in SHA256:
        raise SetupError(f"there is no pinned release for {kind}")
    try:
        with urllib.request.urlopen(f"{DOWNLOADS}/{RELEASE}/terraform_{RELEASE}_{kind}.zip", timeout=_SILENT) as answer:
            archive = answer.read()
    except (OSError, urllib.error.URLError) as error:
        raise SetupError(f"release {RELEASE} cannot be downloaded ({error})") from error
    unpack(archive, expected=SHA256[kind], target=layout.terraform)


def unpack(archive: bytes, *, expected: str, target: Path) -> None:
    """Write the program of a release archive to `target`. Raises SetupError, and writes nothing, on another digest."""
    digest = hashlib.sha256(archive).hexdigest()
    if digest != expected:
        raise SetupError(f"the download of release {RELEASE} is not what was published (SHA-256 {digest})")
    new = target.with_name("terraform.new")
    new.write_bytes(zipfile.ZipFile(io.BytesIO(archive)).read("terraform"))
    new.chmod(0o755)
    os.replace(new, target)
