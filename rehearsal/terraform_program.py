"""The Terraform of a rehearsal: which program it is, and the scripts through which the tools call it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import quote

from rehearsal import started_processes
from rehearsal.work_folder import CannotStart

# cdktf 0.21 ends before it has printed everything that Terraform said, the error above all; so it is written down as
# well. An interrupt comes to all of these processes: Terraform stops, and then the others report how it ended. One that
# comes after that must not end them.
_LOGGING = """#!/bin/sh
case "$1" in apply|destroy) ;; *) exec {program} "$@" ;; esac
log={logs}/$(basename "$PWD")
rm -f "$log.code" "$log.code.part"
trap : INT
{{ trap : INT; {program} "$@"; printf %s $? > "$log.code.part"; }} 2>&1 | tee -i "$log"
trap '' INT
mv "$log.code.part" "$log.code"
exit "$(cat "$log.code")"
"""

# Without a method of installation, Terraform can't get a provider from anywhere.
_TERRAFORM_RC = "provider_installation {\n}\n"


def write_scripts(folder: Path, program: Path, *, logs: Path, notes: Path) -> None:
    """`terraform` in `folder`, which writes what Terraform prints into `logs`; `terraform-recorded`, which only records
    its process in `notes`; and a configuration without any way to install a provider.
    """
    (folder / "terraform.rc").write_text(_TERRAFORM_RC)
    recorded = folder / "terraform-recorded"
    _script(recorded, started_processes.recording(notes, program))
    _script(folder / "terraform", _LOGGING.format(program=quote(str(recorded)), logs=quote(str(logs))))


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def find_terraform() -> Path:
    """The one that cdktf would take: TERRAFORM_BINARY_NAME, or `terraform` beside this Python or on the PATH."""
    command = os.environ.get("TERRAFORM_BINARY_NAME") or "terraform"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    program_path = shutil.which(command, path=path)
    if program_path is None:
        raise CannotStart(f"{command}: not found on the PATH; install Terraform 1.6 or later, or OpenTofu")
    program = Path(program_path).absolute()
    if not _speaks_terraform(program):
        raise CannotStart(
            f"TERRAFORM_BINARY_NAME: '{command}' is no Terraform: `{program} version -json` prints no version of it; "
            "name another, or unset it"
        )
    return program


def _speaks_terraform(program: Path) -> bool:
    # A version manager's script may need all of the environment; what steers Terraform itself doesn't reach it later.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    try:
        answer = subprocess.run(
            [program, "version", "-json"],
            env={**kept, "CHECKPOINT_DISABLE": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=True,
        ).stdout
        return "terraform_version" in json.loads(answer)
    except (OSError, subprocess.SubprocessError, ValueError, TypeError):
        return False
