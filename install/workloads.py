"""What the workloads run with on this machine, and what compiles them for a TPU: JAX, libtpu, MaxText and Ray.

In a virtual environment of its own, because it is large and needs a newer Python than the rest of the project. In it
are others for the upload to TensorBoard and for PyTorch/XLA, which need other versions of the same packages.
"""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

from install import packages
from install.install import Step
from install.steps import Layout, Progress, SetupError, content

FOLDER = ".venv-workloads"
TENSORBOARD_FOLDER = f"{FOLDER}/tensorboard"
PYTORCH_FOLDER = f"{FOLDER}/pytorch"

# MaxText needs 3.12 or newer, and pytype, which it requires, has no package for a newer one.
PYTHON = (3, 12)

# It is published as source only.
BUILT_HERE = ("antlr4-python3-runtime",)

# Prints the version, or why no virtual environment can be made, from Python 2 on.
_PROBE = """
import sys
version = "%d.%d" % sys.version_info[:2]
try:
    import ensurepip, venv
except ImportError:
    version += " without its venv module"
print(version)
"""


def lock(layout: Layout, recipe: str = "ray-maxtext") -> Path:
    """The lock file of a recipe, which its image is built from too."""
    return layout.root / "manifests" / recipe / "requirements.txt"


def inputs(layout: Layout) -> list[str]:
    return [str(layout.root), platform.machine(), content(lock(layout))]


def install(layout: Layout, progress: Progress) -> str:
    """Creates the environment from nothing, and returns which Python it is of.

    Raises SetupError when there is no such Python here, or the packages cannot be had.
    """
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise SetupError(
            f"{FOLDER} can be installed on Linux on x86_64 only, because libtpu has no package for "
            f"{platform.system()} on {platform.machine()}; everything else works without it"
        )
    python = find_python()
    packages.create(layout, python=python, lock=lock(layout), progress=progress, built_here=BUILT_HERE)
    return str(python)


def find_python() -> Path:
    """The Python that PYTHON_WORKLOADS names, else one on PATH, else one that pyenv has.

    Raises SetupError, with those that are not fit.
    """
    version = ".".join(map(str, PYTHON))
    named = os.environ.get("PYTHON_WORKLOADS")
    unfit = []
    for candidate in [named] if named else ["python3", f"python{version}", *_of_pyenv()]:
        answer = _ask_version(candidate)
        if answer == version:
            return Path(candidate)
        unfit.append(f"{candidate} {f'is Python {answer}' if answer else 'does not run'}")
    raise SetupError(
        f"{FOLDER} needs Python {version}: install it (Debian and Ubuntu: apt install python{version}-venv; "
        f"or: pyenv install {version}), or name one with PYTHON_WORKLOADS=/path/to/python{version}"
        + "".join(f"\n  {line}" for line in unfit)
    )


def _of_pyenv() -> list[str]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return [str(path) for path in sorted(root.glob(f"versions/{PYTHON[0]}.{PYTHON[1]}.*/bin/python"))]


def _ask_version(python: str) -> str:
    """What the probe prints; "" if it does not run."""
    try:
        return subprocess.run(
            [python, "-c", _PROBE], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _inner(name: str, doing: str, recipe: str) -> Step:
    """An environment with the packages of a recipe, in the folder of the other. It goes when that is replaced."""

    def inner(layout: Layout) -> Layout:
        return replace(layout, folder=f"{layout.folder}/{name}")

    def create(layout: Layout, progress: Progress) -> None:
        packages.create(inner(layout), python=find_python(), lock=lock(layout, recipe), progress=progress)

    return Step(
        name=name,
        doing=doing,
        inputs=lambda layout: [*inputs(layout), content(lock(layout, recipe))],
        install=create,
        results=lambda layout: [inner(layout).python],
    )


STEPS: tuple[Step, ...] = (
    Step(
        name="workloads",
        doing="JAX, libtpu, MaxText and Ray (about 3.2 GB)",
        inputs=inputs,
        install=install,
        results=lambda layout: [layout.python, *_jax(layout)],
    ),
    _inner("tensorboard", "The uploader to TensorBoard (about 1.8 GB)", "tensorboard"),
)

# Too large to be installed before somebody asks for it.
PYTORCH_STEPS: tuple[Step, ...] = (*STEPS, _inner("pytorch", "PyTorch/XLA and Ray (about 7 GB)", "ray-pytorch"))


def _jax(layout: Layout) -> list[Path]:
    return [layout.venv / "lib" / f"python{PYTHON[0]}.{PYTHON[1]}" / "site-packages" / "jax"]
