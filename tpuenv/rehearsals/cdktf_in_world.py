"""Runs the real CDKTF CLI in a rehearsal's world, and reads what Terraform printed, stack by stack."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rehearsal import started_processes
from rehearsal.world import ROOT, World
from tpuenv.terraform.cdktf import program

_COUNTS = re.compile(r"^(?:Apply|Destroy) complete! Resources: (.*)\.", re.M)
_COUNT = re.compile(r"(\d+) (added|changed|destroyed|imported)")
_PLAN = re.compile(r"^Plan: (.*)\.$", re.M)
_STEP = re.compile(
    r"^(\S+)(?: \(deposed object \w+\))?: (?:(Creating|Modifying|Destroying|Importing)\.\.\."
    r"|(?:Creation|Modifications|Destruction|Import) complete)",
    re.M,
)
_AFTER_A_WARNING = re.compile(
    r"^(?:\(and \d+ more |Apply complete!|Destroy complete!|Plan: |Terraform |No changes\.|Outputs:|\S+: [A-Z][a-z]+)",
    re.M,
)
_POLL_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class StackRun:
    """One stack of a run: Terraform's exit code and all that it printed."""

    name: str
    code: int
    text: str

    @property
    def unchanged(self) -> bool:
        return re.search(r"^No changes\.", self.text, re.M) is not None

    @property
    def counts(self) -> dict[str, int]:
        """Resources "added", "changed", "destroyed"."""
        counts = _COUNTS.search(self.text)
        return {word: int(number) for number, word in _COUNT.findall(counts[1])} if counts else {}

    @property
    def errors(self) -> list[str]:
        """Terraform's own error texts, without the words "Error: "."""
        return self._diagnostics("Error")

    @property
    def warnings(self) -> list[str]:
        """Terraform's own warnings, each once and in one line, without the word "Warning: "."""
        return list(dict.fromkeys(_in_one_line(warning) for warning in self._diagnostics("Warning")))

    def _diagnostics(self, severity: str) -> list[str]:
        """What follows each "Error: " or "Warning: ", up to the next of either."""
        _, *parts = re.split(r"^(Error|Warning): ", self.text, flags=re.M)
        return [text.strip() for kind, text in zip(parts[::2], parts[1::2], strict=True) if kind == severity]


def _in_one_line(warning: str) -> str:
    """Its summary, the address that it is about, and its detail; what Terraform prints next is no part of it."""
    end = _AFTER_A_WARNING.search(warning)
    text = warning[: end.start()] if end else warning
    address = re.search(r"^  with (\S+),$", text, re.M)
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    summary, *details = [text for text in paragraphs if text and not re.match(r"(?:with|on) \S+", text)]
    return ". ".join([summary + (f" ({address[1]})" if address else ""), *details])


@dataclass(frozen=True, kw_only=True)
class StackProgress:
    """How far Terraform is in a stack: changes done and planned (a replacement is two), and one that it works on."""

    stack: str
    done: int = 0
    planned: int = 0
    current: str = ""  # "Creating google_container_cluster.cluster"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the CLI: its exit code, its output, and the stacks that Terraform reached, in their order."""

    code: int
    text: str
    stacks: list[StackRun]

    @property
    def errors(self) -> list[str]:
        return [error for stack in self.stacks for error in stack.errors]

    @property
    def synthesis_warnings(self) -> list[str]:
        """The warnings of Python while the stacks were synthesized."""
        return list(dict.fromkeys(re.findall(r"\b[A-Z][a-z]+Warning: (.+)", self.text)))


def run(
    world: World,
    verb: str,
    *,
    stacks: Sequence[str] = ("*",),
    on_stack: Callable[[StackRun], None] = lambda _: None,
    on_progress: Callable[[StackProgress], None] = lambda _: None,
    settings: dict[str, str] | None = None,
) -> Run:
    """`cdktf <verb> <stacks>`, all approved. Raises tpuenv.failure.Failed.

    `on_stack` is called with every stack as soon as Terraform is done with it, `on_progress` many times a second with
    the stack that it works on. `settings` are variables for this run alone, as if set in front of the command.
    """
    for log in world.logs.iterdir():
        log.unlink()
    command = [str(program()), verb, *stacks, "--auto-approve", "--skip-provider-lock", "--output", str(world.output)]
    printed = world.folder / f"{verb}.log"
    done: list[StackRun] = []
    with (
        printed.open("w") as out,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=world.environment(**(settings or {})),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        ) as running,
    ):
        started_processes.record(world.processes, running.pid)
        try:
            ended = False
            while not ended:
                ended = running.poll() is not None
                for stack in _finished(world, {stack.name for stack in done}):
                    done.append(stack)
                    on_stack(stack)
                if not ended:
                    if progress := _progress(world):
                        on_progress(progress)
                    world.check()
                    time.sleep(_POLL_SECONDS)
        except BaseException:
            running.kill()  # nothing of this world is kept, so nobody waits for it to end well
            raise
    started_processes.forget(world.processes, running.pid)
    return Run(code=running.returncode, text=printed.read_text(errors="replace"), stacks=done)


def _finished(world: World, known: set[str]) -> Iterator[StackRun]:
    """The stacks that Terraform has finished since, oldest first."""
    codes = sorted(world.logs.glob("*.code"), key=lambda path: path.stat().st_mtime_ns)
    for code in codes:
        if code.stem not in known:
            text = code.with_suffix("").read_text(errors="replace")
            yield StackRun(name=code.stem, code=int(code.read_text()), text=text)


def stack_progress(stack: str, text: str) -> StackProgress:
    """The progress of a stack after what Terraform has printed so far."""
    plan = _PLAN.search(text)
    done, current = 0, dict[str, str]()
    for address, verb in _STEP.findall(text):
        if verb:
            current[address] = verb
        else:
            current.pop(address, None)
            done += 1
    address, verb = next(reversed(current.items()), ("", ""))
    return StackProgress(
        stack=stack,
        done=done,
        planned=sum(int(number) for number in re.findall(r"\d+", plan[1])) if plan else 0,
        current=f"{verb} {address}".strip(),
    )


def _progress(world: World) -> StackProgress | None:
    """The progress of the stack that Terraform has begun last and not finished."""
    logs = [path for path in world.logs.iterdir() if not path.suffix and not path.with_suffix(".code").exists()]
    if not logs:
        return None
    newest = max(logs, key=lambda path: path.stat().st_mtime_ns)
    return stack_progress(newest.name, newest.read_text(errors="replace"))
