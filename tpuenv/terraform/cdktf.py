"""The CDKTF CLI, run as it is in front of a person or a log, and what its output says of the stacks."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from environment import project
from tpuenv.failure import Failed, WrongArgument
from tpuenv.terraform.stacks import OUTPUT

# Errors come last; a long deploy that redraws its progress would otherwise fill the memory.
_KEPT_BYTES = 1_000_000


def program() -> Path:
    """The `cdktf` beside this Python, else the one on the PATH. Raises Failed."""
    installed = Path(sys.executable).parent / "cdktf"
    path = installed if installed.exists() else shutil.which("cdktf")
    if path is None:
        raise Failed("cdktf: not found beside this Python nor on the PATH; `make setup` installs it")
    return Path(path)


def run(*arguments: str) -> tuple[int, str]:
    """Runs cdktf; its exit code and the last megabyte of its output, which is shown as it comes.

    The code is 130 after an interrupt, 128 + n if signal n ended it. Raises Failed.
    """
    # main.py needs this Python's packages, whichever is first on the PATH of the shell.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    start = _in_terminal if sys.stdin and sys.stdin.isatty() and sys.stdout.isatty() else _in_pipe
    output = _Tail()
    code = start([str(program()), *arguments], output)
    return code if code >= 0 else 128 - code, output.text()


def failed_stacks(output: str, names: Collection[str]) -> list[str]:
    """The stacks, of these names, in which Terraform failed.

    cdktf puts the stack's name before the first line of a message of Terraform, and spaces before the others.
    """
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    failed, stack = [], ""
    for line in plain.splitlines():
        if (match := re.match(r"[ \t]*([a-z][a-z0-9-]*)  ", line)) and match[1] in names:
            stack = match[1]
        if "Error:" in line and stack and stack not in failed:
            failed.append(stack)
    return failed


def output_folder(options: Sequence[str]) -> Path:
    """The folder that cdktf synthesizes into with these options. Raises WrongArgument."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    try:
        folder: Path = parser.parse_known_args(options)[0].output
    except argparse.ArgumentError as error:
        raise WrongArgument("--output: names no folder") from error
    return project.ROOT / folder


class _Tail:
    """The last of what was printed."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, chunk: bytes) -> None:
        self._bytes += chunk
        if len(self._bytes) > 2 * _KEPT_BYTES:
            del self._bytes[:-_KEPT_BYTES]

    def text(self) -> str:
        return self._bytes.decode(errors="replace")


def _in_pipe(command: Sequence[str], output: _Tail) -> int:
    """For pipelines and logs. After a signal it waits for cdktf: Terraform saves the state then, and frees its lock."""
    with (
        subprocess.Popen(command, cwd=project.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running,
        _passing_on_to(running),
    ):
        assert running.stdout is not None
        while chunk := os.read(running.stdout.fileno(), 65536):
            output.add(chunk)
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    return running.returncode


@contextmanager
def _passing_on_to(running: subprocess.Popen[bytes]) -> Iterator[None]:
    """SIGTERM comes to this process alone. A typed interrupt has reached cdktf too, which counts them."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            running.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_terminal(command: Sequence[str], output: _Tail) -> int:
    """cdktf asks for approval only at a terminal, so it gets one of its own, as large as ours, which is read here."""
    import fcntl
    import pty
    import termios

    ours = sys.stdout.fileno()

    def read(terminal: int) -> bytes:
        size = fcntl.ioctl(ours, termios.TIOCGWINSZ, bytes(8))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
        chunk = os.read(terminal, 65536)
        output.add(chunk)
        return chunk

    os.chdir(project.ROOT)
    return os.waitstatus_to_exitcode(pty.spawn(list(command), read))
