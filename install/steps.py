"""What every step of the setup shares: where things go, what is already done, and how progress is told."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class SetupError(Exception):
    """Why the setup cannot go on, and what to do about it, in words for the user."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The folder that everything is installed into, and the places in it. `root` is the repository."""

    root: Path = ROOT

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def bin(self) -> Path:
        return self.venv / "bin"

    @property
    def python(self) -> Path:
        return self.bin / "python"

    @property
    def node(self) -> Path:
        return self.bin / "node"

    @property
    def terraform(self) -> Path:
        """Outside of `bin`, which goes when the packages are installed anew."""
        return self.venv / "terraform"

    @property
    def node_modules(self) -> Path:
        return self.venv / "node_modules"

    @property
    def jsii_cache(self) -> Path:
        return self.venv / "cache" / "jsii"

    @property
    def log(self) -> Path:
        return self.venv / "setup.log"

    @property
    def site_packages(self) -> Path:
        """Where the virtual environment keeps its packages. Raises SetupError when there is none."""
        found = next(self.venv.glob("lib/python3.*/site-packages"), None)
        if found is None:
            raise SetupError(f"{self.venv} is not a virtual environment; run make clean, then try again")
        return found


class Done:
    """Which steps were completed, with a digest of what they were made from: `.venv/setup.json`.

    A step is recorded only once it has ended, so one that was interrupted is done again.
    """

    def __init__(self, layout: Layout) -> None:
        self._file = layout.venv / "setup.json"

    def is_done(self, step: str, inputs: object) -> bool:
        return self._read().get(step) == _digest(inputs)

    def record(self, step: str, inputs: object) -> None:
        self._write({**self._read(), step: _digest(inputs)})

    def forget(self, step: str) -> None:
        self._write({name: digest for name, digest in self._read().items() if name != step})

    def _read(self) -> dict[str, str]:
        try:
            found = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, digests: Mapping[str, str]) -> None:
        self._file.parent.mkdir(exist_ok=True)
        # Replaced whole, so that no reader and no interruption meets half a file.
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(digests, indent=2) + "\n")
        os.replace(new, self._file)


def _digest(inputs: object) -> str:
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()


def content(file: Path) -> str:
    """A digest of a file's content, to be part of a step's inputs."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def say(line: str) -> None:
    print(f"setup: {line}", flush=True)


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Tell what is being done, counting the seconds on a terminal, and how long it took once it is done."""
    started = time.monotonic()
    over = threading.Event()

    def count() -> None:
        while not over.wait(1):
            print(f"\rsetup: {doing} ... {time.monotonic() - started:.0f} s", end="", flush=True)

    counter = threading.Thread(target=count, daemon=True)
    terminal = sys.stdout.isatty()
    print(f"setup: {doing} ...", end="" if terminal else "\n", flush=True)
    if terminal:
        counter.start()
    try:
        yield
    finally:
        over.set()
        if terminal:
            counter.join()
            print("\r\033[K", end="", flush=True)
    say(f"{doing}: {time.monotonic() - started:.0f} s")


def run(command: Sequence[str | Path], *, layout: Layout, cwd: Path | None = None, check: bool = True) -> str:
    """Run a program with the environment's commands first on PATH; return its output, which the log keeps too.

    Raises SetupError with the end of that output when it fails, unless `check` is off.
    """
    words = [str(word) for word in command]
    ended = subprocess.run(
        words,
        cwd=cwd or layout.root,
        env=clean_environment(layout),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        close_fds=False,
    )
    with layout.log.open("a") as log:
        log.write(f"$ {' '.join(words)}\n{ended.stdout}[exit code {ended.returncode}]\n")
    if check and ended.returncode != 0:
        raise CommandFailed(command=words, output=ended.stdout, log=layout.log)
    return ended.stdout


class CommandFailed(SetupError):
    """A program that the setup ran has failed."""

    def __init__(self, *, command: Sequence[str], output: str, log: Path) -> None:
        last = "\n".join(f"  {line}" for line in output.strip().splitlines()[-12:])
        super().__init__(f"{Path(command[0]).name} failed (all of its output is in {log}):\n{last}")
        self.output = output


def clean_environment(layout: Layout) -> dict[str, str]:
    """The process environment less what would make Python, pip, node or jsii put things elsewhere."""
    unwanted = {
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHOME",
        "PYTHONPATH",
        "PYTHONPYCACHEPREFIX",
        "PIP_USER",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_ROOT",
        "PIP_REQUIRE_VIRTUALENV",
        "NODE_OPTIONS",
        "VIRTUAL_ENV",
        "JSII_NODE",
        "JSII_RUNTIME_PACKAGE_CACHE",
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT",
        "TPUENV_PLAIN_BINDINGS",
    }
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, "PATH": f"{layout.bin}{os.pathsep}{kept.get('PATH', os.defpath)}", "PIP_USER": "0"}


def write_program(file: Path, text: str) -> None:
    """Write an executable file, replacing one that may be in use."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(text)
    new.chmod(0o755)
    os.replace(new, file)
