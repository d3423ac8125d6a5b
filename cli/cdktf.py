"""Runs the CDKTF CLI as it is, in front of the person, and afterwards explains an error that Terraform printed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from cli import project
from cli.explain import explain
from cli.failure import Failed
from cli.transcript import errors, transcript

# Errors come last; a long deploy that redraws its progress would otherwise fill the memory.
_KEPT_BYTES = 1_000_000


def run_cdktf(verb: str, stacks: Sequence[str], *, auto_approve: bool) -> int:
    """cdktf's exit code. `stacks` may hold further arguments of cdktf; without any stack it is all of them."""
    project.wanted()  # Refuses wrong settings in one line each; cdktf would wrap them in its own error.
    if not auto_approve and not (sys.stdin and sys.stdin.isatty()):
        raise Failed(
            f"{verb}: there is no terminal to approve the plan at; add --auto-approve if you know what it does"
        )
    all_stacks = [] if any(not stack.startswith("-") for stack in stacks) else ["*"]
    command = [str(_cdktf()), verb, *all_stacks, *stacks, *(["--auto-approve"] if auto_approve else [])]
    # main.py needs this Python's packages, whichever is first on the PATH of the shell.
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    output = _Tail()
    run = _in_terminal if sys.stdin and sys.stdin.isatty() and sys.stdout.isatty() else _in_pipe
    said = ""
    if auto_approve:
        with transcript(environment) as (recorded, file):
            code = run(command, recorded, output)
            said = file.read_text(errors="replace")
    else:
        # cdktf finds Terraform's question in what Terraform writes to a terminal, so nothing may stand in between.
        code = run(command, environment, output)
    if code:
        _tell(output.text(), said)
    return code


def _tell(printed: str, said: str) -> None:
    """The error that cdktf may have kept to itself, and what to do about it."""
    kept = errors(said)
    if kept and kept.splitlines()[0].split("Error: ")[1] not in printed:
        print(f"\nTerraform said:\n{kept}", file=sys.stderr)
    if explanation := explain(f"{printed}\n{said}"):
        print(f"\n{explanation}", file=sys.stderr)


def _cdktf() -> Path:
    beside = Path(sys.executable).parent / "cdktf"
    found = str(beside) if beside.exists() else shutil.which("cdktf")
    if found is None:
        raise Failed("cdktf: not found beside this Python nor on the PATH; `make setup` installs it")
    return Path(found)


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


def _in_pipe(command: Sequence[str], environment: Mapping[str, str], output: _Tail) -> int:
    """For pipelines and logs. An interrupt reaches cdktf too, and is waited out: Terraform frees its lock then."""

    def leave_it_to_cdktf(_number: int, _frame: FrameType | None) -> None:
        pass

    before = signal.signal(signal.SIGINT, leave_it_to_cdktf)
    try:
        with subprocess.Popen(
            command, cwd=project.ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as running:
            assert running.stdout is not None
            while chunk := os.read(running.stdout.fileno(), 65536):
                output.add(chunk)
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
        return running.returncode
    finally:
        signal.signal(signal.SIGINT, before)


def _in_terminal(command: Sequence[str], environment: Mapping[str, str], output: _Tail) -> int:
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

    os.environ.update(environment)
    os.chdir(project.ROOT)
    return os.waitstatus_to_exitcode(pty.spawn(list(command), read))
