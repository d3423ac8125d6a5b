"""Runs the CDKTF CLI as it is, in front of the person, and afterwards explains an error that Terraform printed."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from environment import Environment, project
from tpuenv.failure import Failed, WrongArgument
from tpuenv.google import login
from tpuenv.recovery import advice
from tpuenv.terraform.stacks import OUTPUT, synthesized_stacks

# Errors come last; a long deploy that redraws its progress would otherwise fill the memory.
_KEPT_BYTES = 1_000_000


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], verb: str, *, description: str, examples: str
) -> argparse.ArgumentParser:
    """The arguments of `tpuenv deploy` and `tpuenv destroy`."""
    parser = subparsers.add_parser(
        verb,
        help=f"cdktf {verb} '*', and an explanation if it fails",
        description=description,
        epilog=f"examples:\n{examples}\nWhat follows a lone -- goes to cdktf as it is.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stacks", nargs="*", metavar="STACK", help="only these; all of them if none is named")
    parser.add_argument("--auto-approve", action="store_true", help="do not ask before each stack")
    return parser


def run(args: argparse.Namespace, *, first: Callable[[Environment], None] = lambda _: None) -> int:
    """cdktf's exit code: 130 after an interrupt, 128 + n if signal n ended it.

    `args.further` is what came after the `--`; `first` is done before cdktf is started.
    """
    wanted = project.real()  # Refuses wrong settings in one line each; cdktf would wrap them in its own error.
    at_terminal = bool(sys.stdin and sys.stdin.isatty())
    if not args.auto_approve and not at_terminal:
        raise Failed(
            f"{args.command}: there is no terminal to approve the plan at; add --auto-approve if you know what it does"
        )
    first(wanted)
    login.require(wanted.settings.project_id)
    approved = ["--auto-approve"] if args.auto_approve else []
    command = [str(_cdktf()), args.command, *(args.stacks or ["*"]), *args.further, *approved]
    # main.py needs this Python's packages, whichever is first on the PATH of the shell.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    start = _in_terminal if at_terminal and sys.stdout.isatty() else _in_pipe
    output = _Tail()
    code = start(command, output)
    if code:
        stacks = {stack.name: stack for stack in synthesized_stacks(output_of(args.further))}
        stopped = [stacks[name] for name in failed(output.text(), stacks)]
        if told := advice.told(wanted, stopped, output.text()):
            print(f"\n{told.strip()}", file=sys.stderr)
    return code if code >= 0 else 128 - code


def failed(output: str, names: Collection[str]) -> list[str]:
    """The stacks, of these names, in which Terraform failed.

    cdktf puts the stack's name before the first line of what it has heard from Terraform, and spaces before the others.
    """
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    found, speaking = [], ""
    for line in plain.splitlines():
        if (match := re.match(r"[ \t]*([a-z][a-z0-9-]*)  ", line)) and match[1] in names:
            speaking = match[1]
        if "Error:" in line and speaking and speaking not in found:
            found.append(speaking)
    return found


def output_of(further: Sequence[str]) -> Path:
    """The folder that cdktf synthesizes into when it gets these options."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    options.add_argument("-o", "--output", type=Path, default=OUTPUT)
    try:
        where: Path = options.parse_known_args(further)[0].output
    except argparse.ArgumentError as error:
        raise WrongArgument("--output: names no folder") from error
    return project.ROOT / where


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


def _in_pipe(command: Sequence[str], output: _Tail) -> int:
    """For pipelines and logs. What asks to stop is waited out: Terraform saves the state then, and frees its lock."""
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
