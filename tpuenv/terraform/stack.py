"""The synthesized stacks, and Terraform run in each of them directly: for what the CDKTF CLI has no command for."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from environment import project
from tpuenv.failure import Failed

OUTPUT = project.ROOT / "cdktf.out"


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A synthesized stack: its name, the folder that Terraform works in, and the stacks that come before it."""

    name: str
    folder: Path
    after: Sequence[str] = ()

    @property
    def configuration(self) -> dict[str, Any]:
        """The stack's JSON as Terraform reads it."""
        found: dict[str, Any] = json.loads((self.folder / "cdk.tf.json").read_text(encoding="utf-8"))
        return found


def environment() -> dict[str, str]:
    """The process environment in which this Python, its Node and its Terraform come first on the PATH."""
    beside = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": os.pathsep.join([beside, os.environ.get("PATH", os.defpath)])}


def synthesize(output: Path = OUTPUT, **settings: str) -> list[Stack]:
    """Runs main.py, and gives every stack in the order of its deployment. `settings` win over those of the process.

    Raises Failed with what main.py said.
    """
    done = subprocess.run(
        [sys.executable, str(project.ROOT / "main.py")],
        cwd=project.ROOT,
        env={**environment(), **settings, "CDKTF_OUTDIR": str(output)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Failed(f"the stacks could not be synthesized:\n{(done.stderr or done.stdout).strip()}")
    return synthesized(output)


def synthesized(output: Path = OUTPUT) -> list[Stack]:
    """Every stack of the last synthesis, in the order of its deployment; none if there was none."""
    try:
        listed = json.loads((output / "manifest.json").read_text(encoding="utf-8"))["stacks"]
    except FileNotFoundError:
        return []
    return _in_order(
        {
            name: Stack(name=name, folder=output / each["workingDirectory"], after=tuple(each["dependencies"]))
            for name, each in listed.items()
        }
    )


def _in_order(stacks: Mapping[str, Stack]) -> list[Stack]:
    """Every stack after those that it depends on."""
    placed: dict[str, Stack] = {}

    def place(name: str) -> None:
        if name not in placed:
            for before in stacks[name].after:
                place(before)
            placed[name] = stacks[name]

    for name in stacks:
        place(name)
    return list(placed.values())


@dataclass(frozen=True, kw_only=True)
class Terraform:
    """Terraform in one stack's folder. `more` are variables for its processes besides the environment's own."""

    stack: Stack
    more: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, shown: bool = False) -> subprocess.CompletedProcess[str]:
        """The finished process, with what it wrote to stdout and stderr together; `shown` prints that as it comes.

        An interrupt or SIGTERM goes on to Terraform and is waited out: it saves the state and frees its lock then.
        After that the signal does to this process what it does without Terraform.
        """
        said: list[str] = []
        with self._start(*arguments, errors=subprocess.STDOUT) as running, _passing_on(running):
            assert running.stdout is not None
            for line in running.stdout:
                said.append(line)
                if shown:
                    print(line, end="", flush=True)
        return subprocess.CompletedProcess(running.args, running.returncode, "".join(said))

    def read(self, *arguments: str) -> str:
        """What a command wrote to stdout alone, as JSON is. Raises Failed with its words when it fails."""
        with self._start(*arguments, errors=subprocess.PIPE) as running, _passing_on(running):
            said, errors = running.communicate()
        if running.returncode:
            raise Failed(f"{self.stack.name}: terraform {arguments[0]} failed:\n{(errors or said).strip()}")
        return said

    def look(self, *arguments: str) -> str:
        """What a command that changes nothing wrote, whether or not it failed; several may run in threads."""
        with self._start(*arguments, errors=subprocess.STDOUT) as running:
            try:
                return running.communicate()[0]
            except BaseException:
                running.kill()
                raise

    def _start(self, *arguments: str, errors: int) -> subprocess.Popen[str]:
        """In a session of its own: at a terminal an interrupt would reach Terraform twice, and twice means at once."""
        return subprocess.Popen(
            [_program(), *arguments],
            cwd=self.stack.folder,
            env={**environment(), "TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1", **self.more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
            start_new_session=True,
        )


@contextmanager
def _passing_on(running: subprocess.Popen[str]) -> Iterator[None]:
    """Interrupts Terraform's whole group, as a terminal would: what wraps Terraform, and its providers, know that."""
    came: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if not came:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGINT)
        came.append(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
        running.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


def _program() -> str:
    wanted = os.environ.get("TERRAFORM_BINARY_NAME") or "terraform"
    found = shutil.which(wanted, path=environment()["PATH"])
    if found is None:
        raise Failed(f"{wanted}: not found beside this Python nor on the PATH; `make setup` installs Terraform")
    return found
