"""What Terraform says, written down: cdktf 0.21 often ends before it has printed the error that stopped Terraform."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

# Terraform takes the place of the shell, so that signals and its exit code are its own. When it ends, cdktf closes the
# terminal it ran in, and the recorder must outlive that.
_PROGRAM = """#!/bin/sh
pipe={folder}/$$
mkfifo "$pipe"
(trap '' HUP; exec tee -a -i {said}) < "$pipe" &
exec {terraform} "$@" > "$pipe" 2>&1
"""


@contextmanager
def transcript(environment: Mapping[str, str]) -> Iterator[tuple[dict[str, str], Path]]:
    """The environment in which cdktf runs Terraform through a recorder, and the file that it writes."""
    with tempfile.TemporaryDirectory(prefix="tpuenv-") as folder:
        said = Path(folder, "said")
        said.touch()
        wanted = environment.get("TERRAFORM_BINARY_NAME") or "terraform"
        terraform = shutil.which(wanted, path=environment.get("PATH")) or wanted
        program = Path(folder, "terraform")
        program.write_text(
            _PROGRAM.format(folder=quote(folder), said=quote(os.fspath(said)), terraform=quote(terraform)),
            encoding="utf-8",
        )
        program.chmod(0o755)
        yield {**environment, "TERRAFORM_BINARY_NAME": os.fspath(program)}, said


def errors(said: str) -> str:
    """What Terraform said from its first error on, for a person who has not seen it; "" if there was none."""
    lines = said.splitlines()
    first = next((number for number, line in enumerate(lines) if "Error: " in line), None)
    return "" if first is None else "\n".join(lines[first:])
