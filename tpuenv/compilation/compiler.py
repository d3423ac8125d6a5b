"""Runs the program that compiles, with the workloads' Python, and ends it with everything that it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from environment import project
from tpuenv.compilation.answers import Answer, NotAnAnswer, Refused, answer_from
from tpuenv.compilation.cache import Cache
from tpuenv.compilation.question import LOCK, PROGRAM, Question
from tpuenv.failure import Failed
from vocabulary.printable import shortened

WORKLOADS = project.ROOT / ".venv-workloads"

_INSTALL = "`make setup-workloads` installs it"
_CHECKED = ("jax", "jaxlib", "libtpu", "maxtext")  # of the lock: what an answer follows from
_LAST_LINES = 8
_LONGEST_LINE = 300  # characters

# What would have the compiler compile something else, or ask another machine.
_LEFT_OUT = ("TPU_", "XLA_", "LIBTPU_", "JAX_", "MEGASCALE_", "PYTHON", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Compiler:
    """The compiler in a virtual environment of the workloads, with the answers that it has given there."""

    workloads: Path = field(default_factory=lambda: WORKLOADS)

    def known(self, question: Question) -> Answer | None:
        """The answer if this has been compiled before, else None. Nothing is compiled."""
        return self._cache.read(question)

    def answer(self, question: Question, recipe: Path, doing: Callable[[str], None]) -> Answer:
        """The answer, compiled if it is not known. `doing` is called with what the program in the recipe's folder does.

        Raises Failed when there is nothing to compile with, or the compiler ended without an answer.
        """
        if answer := self.known(question):
            return answer
        self._check(recipe)
        read = self._compiled(question, recipe, doing)
        try:
            answer = answer_from(read)
        except NotAnAnswer as error:
            raise Failed(f"{recipe.name}/{PROGRAM}: {error}") from None
        if not (isinstance(answer, Refused) and answer.kind.endswith("RuntimeError")):  # may be this machine's fault
            self._cache.write(question, read)
        return answer

    @property
    def _cache(self) -> Cache:
        return Cache(self.workloads / "cache" / "fit")

    @property
    def _python(self) -> Path:
        return self.workloads / "bin" / "python"

    def _check(self, recipe: Path) -> None:
        if not self._python.exists():
            raise Failed(f"the compiler is not installed in {self.workloads.name}; {_INSTALL} (5.0 GB)")
        packages = {path.name for path in self.workloads.glob("lib/python3*/site-packages/*.dist-info")}
        for line in (recipe / LOCK).read_text(encoding="utf-8").splitlines():
            name, _, version = line.removesuffix("\\").strip().partition("==")
            if name in _CHECKED and f"{name}-{version}.dist-info" not in packages:
                raise Failed(f"{self.workloads.name} has no {name} {version}, which {LOCK} names; {_INSTALL}")

    def _compiled(self, question: Question, recipe: Path, doing: Callable[[str], None]) -> Any:
        """The JSON of the answer."""
        # The folder is the program's home and working folder too: everything that it writes goes with it.
        with tempfile.TemporaryDirectory(prefix="tpuenv-fit-", ignore_cleanup_errors=True) as folder:
            errors = Path(folder, "stderr")
            with errors.open("wb") as stream, _ended_by_signals():
                process = self._start(question, recipe, folder, stream.fileno())
                try:
                    read = _answer_of(process, question, doing)
                    process.wait()
                finally:
                    # The compiler has nothing to save, and may be deaf to anything else while it compiles.
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    for pipe in filter(None, (process.stdin, process.stdout)):
                        with suppress(BrokenPipeError):
                            pipe.close()
            if read is None:
                raise Failed(_without_an_answer(process.returncode, errors))
            return read

    def _start(self, question: Question, recipe: Path, folder: str, errors: int) -> subprocess.Popen[str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(_LEFT_OUT)}
        environment |= {"HOME": folder, "TMPDIR": folder, "TPU_LOG_DIR": folder, "LIBTPU_INIT_ARGS": question.flags}
        return subprocess.Popen(
            [self._python, "-P", recipe / PROGRAM],  # -P: the recipe's other programs are no modules of this one
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
            start_new_session=True,
        )


def _answer_of(process: subprocess.Popen[str], question: Question, doing: Callable[[str], None]) -> Any:
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError):  # it has ended: its exit code and stderr say why
        process.stdin.write(f"{json.dumps(asdict(question))}\n")
        process.stdin.flush()  # and left open, for the program ends when it is closed
    answer = None
    for line in process.stdout:
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and "answer" in said:
            answer = said["answer"]
        elif isinstance(said, dict) and isinstance(said.get("doing"), str):
            doing(said["doing"])
    return answer


def _without_an_answer(code: int, errors: Path) -> str:
    """Why the compiler ended, by its exit code and what it last wrote."""
    if code == -signal.SIGKILL:
        return (
            "the compiler was killed, most likely because this machine ran out of memory: models of 7 to 8 billion "
            "parameters took 2 to 3 GiB; end other programs, or compile on a machine with more memory"
        )
    how = f"was ended by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
    text = errors.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()][-_LAST_LINES:]
    shown = "\n".join(f"  {shortened(line, longest=_LONGEST_LINE)}" for line in lines)
    return f"the compiler {how} without an answer" + (f"; what it wrote last:\n{shown}" if shown else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Ends this process by an exception on SIGTERM and SIGHUP, as on an interrupt: what it started ends with it."""

    def end(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    handlers = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
