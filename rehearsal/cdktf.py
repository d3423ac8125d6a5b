"""Run the real CDKTF CLI in a rehearsal's world, and tell what Terraform said, stack by stack."""

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
from rehearsal.world import ROOT, CannotStart, World

_COUNTS = re.compile(r"^(?:Apply|Destroy) complete! Resources: (.*)\.", re.M)
_COUNT = re.compile(r"(\d+) (added|changed|destroyed|imported)")
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
        found = _COUNTS.search(self.text)
        return {word: int(number) for number, word in _COUNT.findall(found.group(1))} if found is not None else {}

    @property
    def errors(self) -> list[str]:
        """Terraform's own error texts, without the words "Error: "."""
        return [part.strip() for part in re.split(r"^Error: ", self.text, flags=re.M)[1:]]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the CLI: its exit code, what it printed, and the stacks that Terraform came to, in their order."""

    code: int
    text: str
    stacks: list[Stack]

    @property
    def errors(self) -> list[str]:
        return [error for stack in self.stacks for error in stack.errors]


def run(
    world: World,
    verb: str,
    *,
    stacks: Sequence[str] = ("*",),
    tell: Callable[[Stack], None] = lambda _: None,
    settings: dict[str, str] | None = None,
) -> Run:
    """`cdktf <verb> <stacks>`, all approved; `tell` hears of every stack as soon as Terraform is done with it.

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
                    tell(stack)
                if not ended:
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


def _cdktf() -> str:
    beside = Path(sys.executable).parent / "cdktf"
    found = str(beside) if beside.exists() else shutil.which("cdktf")
    if found is None:
        raise CannotStart("cdktf: not found beside this Python nor on the PATH; `make setup` installs it")
    return found
