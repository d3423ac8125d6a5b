"""Programs in Python that a test puts in place of others."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from install.steps import write_program


def write_python_program(file: Path, program: str, *options: str) -> Path:
    """An executable file that runs `program` with this Python, given these options. Its code is in a .py beside it.

    The first line of a script cannot name a Python whose path has a space.
    """
    code = file.with_name(f"{file.name}.py")
    code.write_text(program, encoding="utf-8")
    write_program(file, f'#!/bin/sh\nexec {shlex.join([sys.executable, *options, str(code)])} "$@"\n')
    return file
