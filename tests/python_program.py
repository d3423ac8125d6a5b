"""Programs in Python: those that a test puts in place of others, and those that it runs."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import shlex
import subprocess
import sys
import unittest.mock
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


def run_in_this_process(program: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program's output and exit code, as a process of its own would have them: its imports are paid once.

    `variables` are in its environment as well.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    before = sys.argv
    sys.argv = [str(program), *arguments]
    try:
        with (
            unittest.mock.patch.dict(os.environ, variables),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            runpy.run_path(str(program), run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.argv = before
    printed, warned = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess([str(program), *arguments], code, printed, warned)
