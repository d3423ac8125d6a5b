"""Run the real CDKTF CLI in a rehearsal's world, and report what Terraform printed, stack by stack."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rehearsal import processes
from rehearsal.work_folder import CannotStart
from rehearsal.world import ROOT, World

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
class Stack:
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
        match = _COUNTS.search(self.text)
        return {word: int(number) for number, word in _COUNT.findall(match.group(1))} if match is not None else {}

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
    """Its summary, the address that it is about, and its detail; what Terraform says next is no part of it."""
    end = _AFTER_A_WARNING.search(warning)
    text = warning[: end.start()] if end else warning
    address = re.search(r"^  with (\S+),$", text, re.M)
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    summary, *details = [text for text in paragraphs if text and not re.match(r"(?:with|on) \S+", text)]
    return ". ".join([summary + (f" ({address[1]})" if address else ""), *details])


@dataclass(frozen=True, kw_only=True)
class Underway:
    """How far Terraform is in a stack: changes made and planned (a replacement is two), and one that is under way."""

    stack: str
    done: int = 0
    planned: int = 0
    under_way: str = ""  # "Creating google_container_cluster.cluster"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the CLI: its exit code, what it printed, and the stacks that Terraform came to, in their order."""

    code: int
    text: str
    stacks: list[Stack]

    @property
    def errors(self) -> list[str]:
        return [error for stack in self.stacks for error in stack.errors]

    @property
    def synthesis_warnings(self) -> list[str]:
        """What Python warned of while the stacks were synthesized."""
        return list(dict.fromkeys(re.findall(r"\b[A-Z][a-z]+Warning: (.+)", self.text)))


def run(
    world: World,
    verb: str,
    *,
    stacks: Sequence[str] = ("*",),
    report: Callable[[Stack], None] = lambda _: None,
    progress: Callable[[Underway], None] = lambda _: None,
    settings: dict[str, str] | None = None,
) -> Run:
    """`cdktf <verb> <stacks>`, all approved; `report` gets every stack as soon as Terraform is done with it, and
    `progress`, every 0.1 s, the one that it works on.

    `settings` are variables for this run alone, as if set in front of the command.
    """
    for log in world.logs.iterdir():
        log.unlink()
    command = [_cdktf(), verb, *stacks, "--auto-approve", "--skip-provider-lock", "--output", str(world.output)]
    printed = world.folder / f"{verb}.log"
    done: list[Stack] = []
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
        processes.record(world.processes, running.pid)
        try:
            ended = False
            while not ended:
                ended = running.poll() is not None
                for stack in _finished(world, {stack.name for stack in done}):
                    done.append(stack)
                    report(stack)
                if not ended:
                    if at_work := _at_work(world):
                        progress(at_work)
                    world.check()
                    time.sleep(_POLL_SECONDS)
        except BaseException:
            running.kill()  # nothing of this world is kept, so nobody waits for it to end well
            raise
    processes.forget(world.processes, running.pid)
    return Run(code=running.returncode, text=printed.read_text(errors="replace"), stacks=done)


def _finished(world: World, known: set[str]) -> Iterator[Stack]:
    """The stacks that Terraform has finished since, oldest first."""
    codes = sorted(world.logs.glob("*.code"), key=lambda path: path.stat().st_mtime_ns)
    for code in codes:
        if code.stem not in known:
            text = code.with_suffix("").read_text(errors="replace")
            yield Stack(name=code.stem, code=int(code.read_text()), text=text)


def underway(stack: str, text: str) -> Underway:
    """What Terraform has printed so far, in numbers."""
    plan = _PLAN.search(text)
    done, open_steps = 0, dict[str, str]()
    for address, verb in _STEP.findall(text):
        if verb:
            open_steps[address] = verb
        else:
            open_steps.pop(address, None)
            done += 1
    address, verb = next(reversed(open_steps.items()), ("", ""))
    return Underway(
        stack=stack,
        done=done,
        planned=sum(int(number) for number in re.findall(r"\d+", plan.group(1))) if plan else 0,
        under_way=f"{verb} {address}".strip(),
    )


def _at_work(world: World) -> Underway | None:
    """The stack that Terraform has begun last and not finished."""
    logs = [path for path in world.logs.iterdir() if not path.suffix and not path.with_suffix(".code").exists()]
    if not logs:
        return None
    newest = max(logs, key=lambda path: path.stat().st_mtime_ns)
    return underway(newest.name, newest.read_text(errors="replace"))


def _cdktf() -> str:
    beside = Path(sys.executable).parent / "cdktf"
    path = str(beside) if beside.exists() else shutil.which("cdktf")
    if path is None:
        raise CannotStart("cdktf: not found beside this Python nor on the PATH; `make setup` installs it")
    return path
