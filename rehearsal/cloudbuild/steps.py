"""Runs the steps of a build as local processes, in Cloud Build's order and with its ends.

- Order: a step starts when all steps that it waits for have succeeded: those of waitFor, or without it all before it;
  with "-" alone, at once. https://cloud.google.com/build/docs/configuring-builds/configure-build-step-order
- Failure: the first step that fails ends the build; steps that still run are killed, others never start. Cloud Build
  removes their containers. https://github.com/GoogleCloudPlatform/cloud-build-local (build/build.go)
- Time: a step that takes longer than its timeout fails the build; a build that takes longer than its own times out.
- Cancelling: like `docker stop`, SIGTERM to the step's process alone, and to all of them SIGKILL when it has not ended
  in good time. Google does not say what a cancelled step gets, so a step has to survive both.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rehearsal import started_processes
from rehearsal.cloudbuild.config import Config, Step
from rehearsal.cloudbuild.images import Images

SUCCESS, FAILURE, TIMEOUT, CANCELLED = "SUCCESS", "FAILURE", "TIMEOUT", "CANCELLED"

# How long a cancelled step may take to end well: `docker stop` gives 10 s.
GRACE_SECONDS = 10.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a step ended: its status, its exit code (None if it never ran), and how many seconds it ran."""

    step: Step
    status: str
    code: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a build ended, and its steps in the order in which they ended."""

    status: str
    steps: tuple[Done, ...]
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where steps run: what images are, the workspace, the environment of every step, and where processes are noted."""

    images: Images
    workspace: Path
    environment: Mapping[str, str]
    notes: Path
    grace: float = GRACE_SECONDS


def run(config: Config, machine: Machine, *, log_line: Callable[[str], None], cancelled: threading.Event) -> Outcome:
    """Runs all steps. `config` has its substitutions made; `log_line` gets the log's lines, from several threads.

    Raises NoSuchImage before anything starts. Whatever else is raised in here cancels the steps first.
    """
    commands = {step.number: _command(step, machine.images) for step in config.steps}
    build = _Build(config=config, machine=machine, commands=commands, log_line=log_line)
    try:
        return build.run(cancelled)
    except BaseException:
        build.cancel()
        raise


def _command(step: Step, images: Images) -> list[str]:
    return [str(images.program(step.name, step.entrypoint)), *step.args]


@dataclass(kw_only=True)
class _Running:
    step: Step
    process: subprocess.Popen[str]
    reader: threading.Thread
    since: float
    started: Sequence[int] = ()  # what it had started when it was asked to end: nobody's children once it has ended


@dataclass(kw_only=True)
class _Build:
    config: Config
    machine: Machine
    commands: Mapping[int, Sequence[str]]
    log_line: Callable[[str], None]
    running: list[_Running] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)

    def run(self, cancelled: threading.Event) -> Outcome:
        since = time.monotonic()
        while len(self.done) < len(self.config.steps):
            self._start_ready()
            time.sleep(_POLL_SECONDS)
            for running in list(self.running):
                self._check(running)
            failed = next((done for done in self.done if done.status != SUCCESS), None)
            if failed is not None:
                self._kill()
                return self._outcome(FAILURE, f"{failed.step.label} {_words(failed)}")
            if cancelled.is_set():
                self.cancel()
                return self._outcome(CANCELLED, "the build was cancelled")
            if time.monotonic() - since > self.config.timeout:
                self._kill(status=TIMEOUT)
                return self._outcome(TIMEOUT, f"the build took longer than its {self.config.timeout:g} s")
        return self._outcome(SUCCESS, "")

    def cancel(self) -> None:
        """SIGTERM to what runs, then SIGKILL to what is left."""
        for running in self.running:
            running.started = started_processes.family(running.process.pid)[1:]
            running.process.terminate()
        limit = time.monotonic() + self.machine.grace
        while any(running.process.poll() is None for running in self.running) and time.monotonic() < limit:
            time.sleep(_POLL_SECONDS)
        self._kill()

    def _outcome(self, status: str, why: str) -> Outcome:
        if why:
            self.log_line(f"ERROR: {why}")
        self.log_line(status)
        return Outcome(status=status, steps=tuple(self.done), why=why)

    def _start_ready(self) -> None:
        succeeded = {done.step.number for done in self.done}
        begun = succeeded | {running.step.number for running in self.running}
        for step in self.config.steps:
            if step.number not in begun and self._waits_for(step) <= succeeded:
                self._start(step)

    def _waits_for(self, step: Step) -> set[int]:
        if step.wait_for is None:
            return set(range(step.number))
        return {other.number for other in self.config.steps if other.id_ in step.wait_for}

    def _start(self, step: Step) -> None:
        self.log_line(f"Starting {step.label}")
        variables = dict(entry.split("=", 1) for entry in (*self.config.env, *step.env))
        process = subprocess.Popen(
            self.commands[step.number],
            cwd=self.machine.workspace / step.dir_,
            env={**self.machine.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        started_processes.record(self.machine.notes, process.pid)
        reader = threading.Thread(target=self._read, args=(step, process), daemon=True)
        reader.start()
        self.running.append(_Running(step=step, process=process, reader=reader, since=time.monotonic()))

    def _read(self, step: Step, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.log_line(f"{step.label}: {line.rstrip()}")

    def _check(self, running: _Running) -> None:
        seconds = time.monotonic() - running.since
        code = running.process.poll()
        if code is None and running.step.timeout is not None and seconds > running.step.timeout:
            self._end(running, TIMEOUT)
        elif code is not None:
            self._end(running, SUCCESS if code == 0 else FAILURE)

    def _kill(self, *, status: str = CANCELLED) -> None:
        for running in list(self.running):
            self._end(running, status)

    def _end(self, running: _Running, status: str) -> None:
        """Nothing of a step outlives it: its container goes, with all that the step has started."""
        for pid in (
            started_processes.family(running.process.pid)[1:] if running.process.returncode is None else running.started
        ):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(running.process.pid, signal.SIGKILL)
        code = running.process.wait()
        running.reader.join(timeout=5)  # what has left the step's process group may still hold the other end
        if running.process.stdout is not None and not running.reader.is_alive():
            running.process.stdout.close()
        started_processes.forget(self.machine.notes, running.process.pid)
        self.running.remove(running)
        seconds = time.monotonic() - running.since
        self.done.append(Done(step=running.step, status=status, code=code, seconds=seconds))
        if status == SUCCESS:
            self.log_line(f"Finished {running.step.label}")


def _words(done: Done) -> str:
    if done.status == TIMEOUT:
        return f"took longer than its {done.step.timeout:g} s"
    return f"failed: exit status {done.code}"
