"""Terraform run in a stack's folder, for what the CDKTF CLI has no command for."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from tpuenv.failure import Failed
from tpuenv.terraform.stacks import Stack, process_environment


@dataclass(frozen=True, kw_only=True)
class Terraform:
    """Terraform in one stack's folder."""

    stack: Stack

    def run(self, *arguments: str, shown: bool = False) -> subprocess.CompletedProcess[str]:
        """The finished process, with what it wrote to stdout and stderr together; `shown` prints that as it comes.

        An interrupt or SIGTERM goes on to Terraform, which then saves the state and releases its lock; this waits for
        that. Afterwards the signal does to this process what it does without Terraform.
        """
        lines: list[str] = []
        with self._start(*arguments, errors=subprocess.STDOUT) as process, _signals_passed_to(process):
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if shown:
                    print(line, end="", flush=True)
        return subprocess.CompletedProcess(process.args, process.returncode, "".join(lines))

    def read(self, *arguments: str) -> str:
        """What a command wrote to stdout alone, as JSON is. Raises Failed with its error when it fails."""
        with self._start(*arguments, errors=subprocess.PIPE) as process, _signals_passed_to(process):
            output, errors = process.communicate()
        if process.returncode:
            raise Failed(f"{self.stack.name}: terraform {arguments[0]} failed:\n{(errors or output).strip()}")
        return output

    def run_read_only(self, *arguments: str) -> str:
        """What a command that changes nothing wrote, whether or not it failed; several may run in threads."""
        with self._start(*arguments, errors=subprocess.STDOUT) as process:
            try:
                return process.communicate()[0]
            except BaseException:
                process.kill()
                raise

    def _start(self, *arguments: str, errors: int) -> subprocess.Popen[str]:
        """In a session of its own: at a terminal an interrupt would reach Terraform twice, and the second time it
        stops at once, without its state.
        """
        return subprocess.Popen(
            [_program(), *arguments],
            cwd=self.stack.folder,
            env={**process_environment(), "TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
            start_new_session=True,
        )


@contextmanager
def _signals_passed_to(process: subprocess.Popen[str]) -> Iterator[None]:
    """Interrupts Terraform's whole group, as a terminal does: wrappers of Terraform and its providers expect that."""
    received: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if not received:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
        received.append(number)

    handlers = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
        process.wait()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if received:
        signal.raise_signal(received[0])


def _program() -> str:
    name = os.environ.get("TERRAFORM_BINARY_NAME") or "terraform"
    path = shutil.which(name, path=process_environment()["PATH"])
    if path is None:
        raise Failed(f"{name}: neither beside this Python nor on the PATH; `make setup` installs Terraform")
    return path
