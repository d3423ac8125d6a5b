"""What is compiled: the training step of a run, for the topology of its slice and the number of slices."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from manifests.recipes import Recipe
from manifests.render import Run, arguments, parameters
from tpuenv.compilation.topology import Topology, topology

PROGRAM = "compile_step.py"  # in the recipe's folder
LOCK = "requirements.txt"  # the packages that it runs with
FLAGS = "libtpu_init_args"  # the parameter with the compiler's flags

# Words of a run that a training step does not depend on, and that would have MaxText reach the bucket or Google Cloud.
_NOT_COMPILED = {
    "base_output_directory": None,
    "run_name": None,
    "dataset_path": None,
    "dataset_type": "synthetic",
    "enable_checkpointing": "false",
    "enable_goodput_recording": "false",
    "monitor_goodput": "false",
    "gcs_metrics": "false",
    "enable_tensorboard": "false",
    "jax_cache_dir": "",
}


@dataclass(frozen=True, kw_only=True)
class Question:
    """Everything that the compiler's answer follows from."""

    topology: Topology
    slices: int
    arguments: tuple[str, ...]  # key=value
    flags: str  # of the TPU compiler, as in LIBTPU_INIT_ARGS
    program: str  # its SHA-256, and that of the lock, in hexadecimal digits
    lock: str

    @property
    def digest(self) -> str:
        """Hexadecimal digits that differ when anything of the question does."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def question_of(run: Run) -> Question:
    """What is to be compiled for a run of a recipe that `can_be_compiled`.

    Raises BadManifest when the run is not possible, for example because its mesh is not that of the slice.
    """
    words = arguments(run) | {key: value for key, value in _NOT_COMPILED.items() if value is not None}
    assert run.group is not None  # or `arguments` would have raised: such a recipe runs on TPUs
    return Question(
        topology=topology(run.group.slice),
        slices=run.slices,
        arguments=tuple(
            f"{key}={value}" for key, value in sorted(words.items()) if _NOT_COMPILED.get(key, value) is not None
        ),
        flags=parameters(run).get(FLAGS, ""),
        program=_digest(run.recipe.folder / PROGRAM),
        lock=_digest(run.recipe.folder / LOCK),
    )


def can_be_compiled(recipe: Recipe) -> bool:
    """Whether the recipe has a program that compiles its training step."""
    return (recipe.folder / PROGRAM).is_file()


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
