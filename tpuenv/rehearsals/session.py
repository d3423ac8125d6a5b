"""What the commands that rehearse share: a world for the settings, leaving well, parts with times and problems."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from environment import Environment, Refused, project
from environment.services import SERVICES
from environment.settings.model import Settings
from tpuenv.failure import Failed
from tpuenv.terminal.colours import Tone, wrapped
from tpuenv.terminal.progress import Progress
from tpuenv.terraform.errors import protected

if TYPE_CHECKING:
    from rehearsal.cdktf import Run, Stack, Underway
    from rehearsal.world import World

FOLDER = project.ROOT / ".venv" / "rehearsal"
_CACHE = project.ROOT / ".venv" / "cache" / "rehearsal"

# What a project number looks like, where PROJECT_NUMBER does not give one.
_NUMBER = "123456789012"

PROTECTED = {"DELETION_PROTECTION": "true", "DESTROY_DATA": "false"}
UNPROTECTED = {"DELETION_PROTECTION": "false", "DESTROY_DATA": "true"}


def to_rehearse(*, yes_it_exists: bool) -> Environment:
    """The environment of the settings. Raises environment.Refused, unless `yes_it_exists` also for a region, zone or
    GKE version that is not on Google's published lists.
    """
    environment = project.load()
    if environment.unlisted and not yes_it_exists:
        raise Refused(tuple(f"{line}; if it is right, say --yes-it-exists" for line in environment.unlisted))
    return environment


@contextlib.contextmanager
def world_for(environment: Environment, folder: Path, settings: Mapping[str, str]) -> Iterator[World]:
    """A world in `folder`: the project of the settings, as `tpuenv bootstrap` leaves it.

    Raises Failed when it cannot start, or is lost while something is played in it.
    """
    from rehearsal.work_folder import CannotStart
    from rehearsal.world import Lost, Project, World

    played = Project(
        id_=environment.settings.project_id,
        number=environment.settings.project_number or _NUMBER,
        region=environment.settings.region,
        state_bucket=environment.names.state_bucket,
        services=list(SERVICES),
        repository=environment.settings.build_repository,
        offered=_named(environment) if environment.unlisted else (),
    )
    world = World(
        folder=folder.absolute(),
        project=played,
        cache=_CACHE,
        settings={project.FOLDER: str(project.folder()), **settings},
        ours=folder.absolute() == FOLDER and not FOLDER.is_symlink(),
    )
    try:
        with _leaving_on_signals(), world:
            yield world
    except (CannotStart, Lost) as error:
        raise Failed(str(error)) from error


def _named(environment: Environment) -> list[str]:
    """All that Google must have for the environment to be made, once somebody has said that it does."""
    settings = environment.settings
    zones = [settings.zone_of_cpu_nodes, *(group.zone for group in environment.groups)]
    return [*dict.fromkeys([settings.region, settings.tensorboard_region, *zones, settings.gke_version])]


def overrides(process_env: Mapping[str, str]) -> dict[str, str]:
    """The settings that the process environment overrides: nothing else of it reaches the stacks."""
    keys = [field.name.upper() for field in fields(Settings)]
    return {key: process_env[key] for key in keys if key in process_env}


@contextlib.contextmanager
def _leaving_on_signals() -> Iterator[None]:
    """A pipeline that gives up sends SIGTERM, a terminal that is closed SIGHUP: what was started ends with this."""
    signals = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]

    def leave(number: int, _frame: FrameType | None) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        with contextlib.suppress(OSError):  # the terminal may be gone
            os.write(2, b"interrupted\n")
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Parts:
    """The parts of a rehearsal in one world, each with its time and what was wrong in it."""

    def __init__(self, world: World, environment: Environment) -> None:
        self.world = world
        self.environment = environment
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.times: list[tuple[str, float, bool]] = []
        self.progress = Progress()
        for warning in environment.warnings:
            self.warn(warning)

    def say(self, text: str, tone: Tone | None = None) -> None:
        """Prints a text, in lines that fit."""
        for line in wrapped(text):
            self.progress.line(line, tone)

    @contextlib.contextmanager
    def part(self, title: str) -> Iterator[None]:
        self.say(title, Tone.TITLE)
        before, since = len(self.problems), time.monotonic()
        yield
        self.times.append((title, time.monotonic() - since, len(self.problems) == before))
        self.say("\n")

    def wrong(self, problem: str) -> None:
        self.problems.append(problem)
        self.say(f"  NOT OK: {problem}", Tone.BAD)

    def warn(self, warning: str) -> None:
        """Says it now, if it is new, and once more in the summary."""
        if warning not in self.warnings:
            self.warnings.append(warning)
            self.say(f"warning: {warning}", Tone.WARNING)

    def cdktf(self, verb: str, settings: dict[str, str], *stacks: str) -> Run:
        """The real CLI, for these stacks or for all."""
        from rehearsal import cdktf

        with Progress() as self.progress:
            self.progress.doing("cdktf")
            run = cdktf.run(
                self.world,
                verb,
                stacks=stacks or ("*",),
                report=self._stack,
                progress=self._underway,
                settings=settings,
            )
        for warning in run.synthesis_warnings:
            self.warn(f"synthesis: {warning}")
        return run

    def failed(self, run: Run, words: str) -> None:
        """Says what Terraform said. The problem itself, all that the summary has, names the stack and the cause."""
        self.wrong(": ".join([words, *_cause(run)]))
        for error in run.errors or [run.text[-2000:]]:
            self.say("  " + error.replace("\n", "\n  "))

    def summary(self) -> int:
        """The table of times, and the warnings and problems once more; the exit code."""
        from rehearsal.report import counted

        self.say("Summary", Tone.TITLE)
        for title, seconds, well in self.times:
            self._row(seconds, "ok" if well else "NOT OK", title, Tone.GOOD if well else Tone.BAD)
        self._row(sum(seconds for _, seconds, _ in self.times), "", "the whole rehearsal")
        if self.warnings:
            self.say("\n")
            self.say(f"{counted(len(self.warnings), 'warning')}:", Tone.WARNING)
            for warning in self.warnings:
                self.say(f"  {warning}", Tone.WARNING)
        if self.problems:
            errors = Progress(out=sys.stderr)
            errors.line("")
            errors.line(f"{counted(len(self.problems), 'problem')}:", Tone.BAD)
            for problem in self.problems:
                for line in wrapped(f"  {problem.splitlines()[0]}"):
                    errors.line(line, Tone.BAD)
        return 1 if self.problems else 0

    def _row(self, seconds: float, verdict: str, title: str, tone: Tone | None = None) -> None:
        start = f"  {seconds:6.1f} s  {verdict:6}  "
        for line in wrapped(start + title, under=len(start)):
            self.progress.line(line, tone)

    def _stack(self, stack: Stack) -> None:
        """What Terraform did in a stack that it is done with."""
        counts = ", ".join(f"{number} {word}" for word, number in stack.counts.items() if number)
        stopped = "refused" if "prevent_destroy" in stack.text else "stopped"
        words = stopped if stack.code else "no changes" if stack.unchanged else counts or "nothing to do"
        self.say(f"  {stack.name:16} {words}")
        self.progress.doing("cdktf")
        for warning in stack.warnings:
            self.warn(f"{stack.name}: Terraform: {warning}")

    def _underway(self, stack: Underway) -> None:
        far = f"{stack.done} of {stack.planned}" if stack.planned else "planning"
        self.progress.doing(stack.stack, f"{far}, {stack.under_way}" if stack.under_way else far)


def _cause(run: Run) -> list[str]:
    """The first stack with an error and, in a line, that error; nothing where Terraform said none."""
    for stack in run.stacks:
        for error in stack.errors:
            refused = protected(f"Error: {error}")
            lines = [f"{address} is protected until {lifting}" for address, lifting in refused.items()]
            return [stack.name, *(lines or error.splitlines()[:1])]
    return []
