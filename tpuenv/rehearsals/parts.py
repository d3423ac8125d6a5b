"""The parts of a rehearsal, each with its time and its problems, and the summary of them."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from environment import Environment
from tpuenv.terminal.colours import Tone, wrapped
from tpuenv.terminal.progress import Progress
from tpuenv.terraform.errors import protected

if TYPE_CHECKING:
    from rehearsal.world import World
    from tpuenv.rehearsals.cdktf_in_world import Run, StackProgress, StackRun

PROTECTED = {"DELETION_PROTECTION": "true", "DESTROY_DATA": "false"}
UNPROTECTED = {"DELETION_PROTECTION": "false", "DESTROY_DATA": "true"}


class Parts:
    """The parts of a rehearsal in one world, each with its time and its problems."""

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
        """Prints a text in lines of at most 80 columns."""
        for line in wrapped(text):
            self.progress.line(line, tone)

    @contextlib.contextmanager
    def part(self, title: str) -> Iterator[None]:
        """Prints the title, and keeps the time and whether the part was without problems for the summary."""
        self.say(title, Tone.TITLE)
        before, since = len(self.problems), time.monotonic()
        yield
        self.times.append((title, time.monotonic() - since, len(self.problems) == before))
        self.say("\n")

    def wrong(self, problem: str) -> None:
        """Prints a problem, and keeps it for the summary: then the exit code is 1."""
        self.problems.append(problem)
        self.say(f"  NOT OK: {problem}", Tone.BAD)

    def warn(self, warning: str) -> None:
        """Prints a warning, if it is new, and keeps it for the summary."""
        if warning not in self.warnings:
            self.warnings.append(warning)
            self.say(f"warning: {warning}", Tone.WARNING)

    def cdktf(self, verb: str, settings: dict[str, str], *stacks: str, failure: str = "") -> Run:
        """Runs the real CLI for these stacks, or for all. That it fails is a problem, if `failure` says which."""
        from tpuenv.rehearsals import cdktf_in_world as cdktf

        with Progress() as self.progress:
            self.progress.doing("cdktf")
            run = cdktf.run(
                self.world,
                verb,
                stacks=stacks or ("*",),
                on_stack=self._stack_done,
                on_progress=self._stack_progress,
                settings=settings,
            )
        for warning in run.synthesis_warnings:
            self.warn(f"synthesis: {warning}")
        if run.code and failure:
            self.failed(run, failure)
        return run

    def failed(self, run: Run, words: str) -> None:
        """A problem that names the stack and the cause, with all that Terraform printed about it."""
        self.wrong(": ".join([words, *_cause(run)]))
        for error in run.errors or [run.text[-2000:]]:
            self.say("  " + error.replace("\n", "\n  "))

    def check_remains(self, expected: str, *types: str) -> None:
        """What is left is a problem, except `expected` and objects whose type begins with one of `types`."""
        from rehearsal import inventory

        remains = inventory.remains(self.world.cloud, self.world.project.state_bucket)
        left = [name for name in remains if not name.startswith(types)]
        if left:
            self.wrong(f"{len(left)} things are left: {', '.join(left[:5])}")
        else:
            self.say(f"  nothing is left but {expected}")

    def check_tokens(self) -> None:
        """That a state, a plan, a record or a log holds the token of an account is a problem."""
        from rehearsal.leaks import kept_tokens

        for name in kept_tokens(self.world):
            self.wrong(f"{name} holds the access token of an account; whoever may read it can act as that account")

    def summary(self) -> int:
        """Prints the table of times, and the warnings and problems once more; the exit code."""
        from rehearsal.inventory import counted

        self.say("Summary", Tone.TITLE)
        for title, seconds, good in self.times:
            self._row(seconds, "ok" if good else "NOT OK", title, Tone.GOOD if good else Tone.BAD)
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

    def _stack_done(self, stack: StackRun) -> None:
        """Prints what Terraform did in a stack."""
        counts = ", ".join(f"{number} {word}" for word, number in stack.counts.items() if number)
        stopped = "refused" if "prevent_destroy" in stack.text else "stopped"
        words = stopped if stack.code else "no changes" if stack.unchanged else counts or "nothing to do"
        self.say(f"  {stack.name:16} {words}")
        self.progress.doing("cdktf")
        for warning in stack.warnings:
            self.warn(f"{stack.name}: Terraform: {warning}")

    def _stack_progress(self, stack: StackProgress) -> None:
        done = f"{stack.done} of {stack.planned}" if stack.planned else "planning"
        self.progress.doing(stack.stack, f"{done}, {stack.current}" if stack.current else done)


def _cause(run: Run) -> list[str]:
    """The first stack with an error and, in a line, that error; nothing where Terraform printed none."""
    for stack in run.stacks:
        for error in stack.errors:
            refused = protected(f"Error: {error}")
            lines = [f"{address} is protected until {lifting}" for address, lifting in refused.items()]
            return [stack.name, *(lines or error.splitlines()[:1])]
    return []
