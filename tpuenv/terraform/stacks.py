"""The synthesized stacks: their folders, their JSON and their order."""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from environment import project
from environment.names import PIPELINE, TPU_VMS
from tpuenv.failure import Failed, WrongArgument
from vocabulary.printable import quoted

# cdktf takes its options from variables too, as the epilogue of `cdktf --help` says.
OUTPUT = project.ROOT / (os.environ.get("CDKTF_OUTPUT") or "cdktf.out")


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A synthesized stack: its name, the folder that Terraform works in, and the stacks that it depends on."""

    name: str
    folder: Path
    dependencies: Sequence[str] = ()

    @property
    def configuration(self) -> dict[str, Any]:
        """The stack's JSON as Terraform reads it."""
        configuration: dict[str, Any] = json.loads((self.folder / "cdk.tf.json").read_text(encoding="utf-8"))
        return configuration


def process_environment() -> dict[str, str]:
    """The variables of a process that finds this Python, its Node and its Terraform first on the PATH."""
    beside = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": os.pathsep.join([beside, os.environ.get("PATH", os.defpath)])}


def synthesize(output: Path = OUTPUT, **settings: str) -> list[Stack]:
    """Runs main.py; every stack in the order of its deployment. `settings` win over the process environment's.

    Raises WrongArgument with main.py's own lines for wrong settings, manifests or output, else Failed with its error.
    """
    process = subprocess.run(
        [sys.executable, str(project.ROOT / "main.py")],
        cwd=project.ROOT,
        env={**process_environment(), **settings, "CDKTF_OUTDIR": str(output)},
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode == WrongArgument.exit_code:
        raise WrongArgument((process.stderr or process.stdout).strip())
    if process.returncode:
        raise Failed(f"the stacks could not be synthesized:\n{(process.stderr or process.stdout).strip()}")
    return synthesized_stacks(output)


def synthesized_stacks(output: Path = OUTPUT) -> list[Stack]:
    """Every stack of the last synthesis, in the order of its deployment; none if there was no synthesis."""
    try:
        entries = json.loads((output / "manifest.json").read_text(encoding="utf-8"))["stacks"]
    except FileNotFoundError:
        return []
    return _in_order(
        {
            name: Stack(name=name, folder=output / entry["workingDirectory"], dependencies=tuple(entry["dependencies"]))
            for name, entry in entries.items()
        }
    )


def _in_order(stacks: Mapping[str, Stack]) -> list[Stack]:
    """Every stack after those that it depends on."""
    placed: dict[str, Stack] = {}

    def place(name: str) -> None:
        if name not in placed:
            for dependency in stacks[name].dependencies:
                place(dependency)
            placed[name] = stacks[name]

    for name in stacks:
        place(name)
    return list(placed.values())


def selected_stacks(stacks: Sequence[Stack], names: Sequence[str]) -> list[Stack]:
    """The named stacks, or those that builds deploy if none is named, in the order given. Raises WrongArgument."""
    refuse_unknown(stacks, [name for name in names if name not in {stack.name for stack in stacks}])
    return [stack for stack in stacks if stack.name in names] if names else of_builds(stacks)


def of_builds(stacks: Iterable[Stack]) -> list[Stack]:
    """The stacks that builds deploy, or would deploy if there were a pipeline and no TPU VMs."""
    stacks = list(stacks)
    has_pipeline = any(stack.name == PIPELINE for stack in stacks)
    return [stack for stack in stacks if not (has_pipeline and stack.name in (PIPELINE, TPU_VMS))]


def refuse_unknown(stacks: Sequence[Stack], unknown: Sequence[str]) -> None:
    """Raises WrongArgument when any name is `unknown`."""
    if unknown:
        known = [stack.name for stack in stacks]
        nearest = difflib.get_close_matches(unknown[0][:64], known, n=1, cutoff=0.6)
        hint = f"did you mean {nearest[0]}? There" if nearest else "there"
        raise WrongArgument(f"{quoted(unknown[0])}: there is no such stack; {hint} are {', '.join(known)}")


def unmatched(stacks: Iterable[Stack], words: Iterable[str]) -> list[str]:
    """Those of the words that name no stack. A word with more than * and ? of cdktf's patterns is not judged."""
    names = [stack.name for stack in stacks]
    return [
        word
        for word in words
        if re.fullmatch(r"[\w*?.-]+", word) and not any(fnmatchcase(name, word) for name in names)
    ]
