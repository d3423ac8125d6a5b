"""What the steps of the setup share: paths, the record of completed steps, progress, running programs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LOG_SECONDS = 15  # between two lines about the same step where the output is no terminal


class SetupError(Exception):
    """Why the setup stops, and what to do about it. Shown to the user as it is."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The folder that everything is installed into, and the paths in it. `root` is the repository, `folder` the name
    of the virtual environment in it.
    """

    root: Path = ROOT
    folder: str = ".venv"

    @property
    def venv(self) -> Path:
        return self.root / self.folder

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
        """Outside of `bin`, which is deleted when the packages are installed again."""
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
        folder = next(self.venv.glob("lib/python3.*/site-packages"), None)
        if folder is None:
            raise SetupError(f"{self.venv} is not a virtual environment; run make clean, then try again")
        return folder


class Completed:
    """The completed steps, each with a digest of its inputs: `setup.json` in the virtual environment's folder.

    A step is recorded when it has ended, so an interrupted step runs again.
    """

    def __init__(self, layout: Layout) -> None:
        self._file = layout.venv / "setup.json"

    def is_current(self, step: str, inputs: object) -> bool:
        return self._read().get(step) == _digest(inputs)

    def record(self, step: str, inputs: object) -> None:
        self._write({**self._read(), step: _digest(inputs)})

    def forget(self, step: str) -> None:
        self._write({name: digest for name, digest in self._read().items() if name != step})

    def _read(self) -> dict[str, str]:
        try:
            digests = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return {}
        return digests if isinstance(digests, dict) else {}

    def _write(self, digests: Mapping[str, str]) -> None:
        self._file.parent.mkdir(exist_ok=True)
        # Replaced as a whole: an interruption never leaves half a file.
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(digests, indent=2) + "\n")
        os.replace(new, self._file)


def _digest(inputs: object) -> str:
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()


def content(file: Path) -> str:
    """The digest of a file's content, for the inputs of a step."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def say(line: str) -> None:
    print(f"setup: {line}", flush=True)


class Progress:
    """Shows what runs and for how many seconds: at a terminal in one line that is redrawn, else in a line now and then.

    `detail` says how far it is, such as "23 of 98 packages".
    """

    def __init__(self, doing: str) -> None:
        self.detail = ""
        self._doing = doing
        self._started = time.monotonic()
        self._over = threading.Event()
        self._terminal = sys.stdout.isatty()
        self._drawer = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Progress:
        if not self._terminal:
            say(f"{self._doing} ...")
        self._drawer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._drawer.join()
        if self._terminal:
            print("\r\033[K", end="", flush=True)
        self.detail = ""
        say(self._line())

    def _draw(self) -> None:
        while not self._over.wait(1 if self._terminal else LOG_SECONDS):
            if self._terminal:
                width = shutil.get_terminal_size().columns - 1
                print(f"\r\033[K{f'setup: {self._line()}'[:width]}", end="", flush=True)
            else:
                say(self._line())

    def _line(self) -> str:
        detail = f"{self.detail}, " if self.detail else ""
        return f"{self._doing}: {detail}{time.monotonic() - self._started:.0f} s"


def run(
    command: Sequence[str | Path],
    *,
    layout: Layout,
    cwd: Path | None = None,
    check: bool = True,
    on_line: Callable[[str], None] = lambda line: None,
) -> str:
    """Runs a program with the environment's commands first on PATH, and returns its output, which the log keeps too.

    `on_line` gets each line of the output as soon as it is printed. Raises CommandFailed with the end of the output
    when the program fails, unless `check` is off.
    """
    words = [str(word) for word in command]
    lines: list[str] = []
    with subprocess.Popen(
        words,
        cwd=cwd or layout.root,
        env=clean_environment(layout),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        close_fds=False,
    ) as program:
        assert program.stdout is not None
        for line in program.stdout:
            lines.append(line)
            on_line(line)
    output = "".join(lines)
    with layout.log.open("a") as log:
        log.write(f"$ {' '.join(words)}\n{output}[exit code {program.returncode}]\n")
    if check and program.returncode != 0:
        raise CommandFailed(command=words, output=output, log=layout.log)
    return output


def download(
    command: Sequence[str | Path],
    *,
    what: str,
    server: str,
    unreachable: Sequence[str],
    layout: Layout,
    cwd: Path | None = None,
    on_line: Callable[[str], None] = lambda line: None,
) -> None:
    """Runs pip or npm. Raises SetupError, which says so if one of the texts `unreachable` is in its output."""
    try:
        run(command, layout=layout, cwd=cwd, on_line=on_line)
    except CommandFailed as failed:
        if not any(text in failed.output for text in unreachable):
            raise
        raise SetupError(
            f"{what} cannot be downloaded: is there a network, and is {server} reachable? (a first setup needs both; "
            f"all output is in {layout.log})"
        ) from failed


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
