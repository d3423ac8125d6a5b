"""The `terraform` of a rehearsal writes down what Terraform prints and how it ends."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rehearsal.terraform_program import write_scripts


@pytest.mark.parametrize("code", [0, 1])
def test_an_interrupt_after_terraform_has_ended_loses_nothing(tmp_path: Path, code: int) -> None:
    """It comes to all processes of the script, while one of them puts the exit code in its place."""
    tools, logs, stack = tmp_path / "tools", tmp_path / "logs", tmp_path / "foundation"
    for folder in (tools, logs, stack):
        folder.mkdir()
    for name, text in (("terraform", f"echo said; exit {code}"), ("mv", 'kill -INT 0; PATH=$REAL exec mv "$@"')):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    write_scripts(tmp_path, tools / "terraform", logs=logs, notes=tmp_path)
    ended = subprocess.run(
        [tmp_path / "terraform", "apply"],
        cwd=stack,
        env={"PATH": f"{tools}:/usr/bin:/bin", "REAL": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "said\n", "")
    assert {file.name: file.read_text() for file in logs.iterdir()} == {
        "foundation": "said\n",
        "foundation.code": str(code),
    }
