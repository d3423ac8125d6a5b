"""`tpuenv rehearse`: the whole way of the environment on this machine, against a played Google Cloud."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from shlex import quote
from types import FrameType
from typing import TYPE_CHECKING

from cli import project
from cli.failure import Failed
from environment import Environment
from environment.services import SERVICES
from environment.settings import Settings

if TYPE_CHECKING:
    from rehearsal.cdktf import Run, Stack
    from rehearsal.world import World

_DESCRIPTION = """\
Deploys every stack of vars.env with the real cdktf CLI and the real Terraform against
a Google Cloud that is played on this machine: no account, no credentials, no network.
It shows what exists, deploys again (nothing may change), submits the hello-tpu job,
sees destroy refused while protected, destroys everything, and checks that nothing is
left. The exit code is 0 only if all of that went well.
"""

_EPILOG = """\
examples:
  tpuenv rehearse
  TPU_TYPE=v5p-128 NUM_TPU_POOLS=1 tpuenv rehearse
  tpuenv rehearse --keep     stop before destroy, and say how to look around

It proves the wiring, the order, that a second deploy changes nothing, and recovery; it
does not prove how Google Cloud behaves. What it refuses, and after which page of
documentation, is in rehearsal/rules/.
"""

_FOLDER = project.ROOT / ".venv" / "rehearsal"
_CACHE = project.ROOT / ".venv" / "cache" / "rehearsal"

# What a project number looks like, where PROJECT_NUMBER does not give one.
_NUMBER = "123456789012"

_PROTECTED = {"DELETION_PROTECTION": "true", "DESTROY_DATA": "false"}
_UNPROTECTED = {"DELETION_PROTECTION": "false", "DESTROY_DATA": "true"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "rehearse",
        help="play the whole deployment on this machine, without a cloud account",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--keep", action="store_true", help="leave the environment deployed in the played cloud")
    parser.add_argument(
        "--folder",
        type=Path,
        default=_FOLDER,
        help="where to work: new, empty or a rehearsal's (default: .venv/rehearsal)",
    )


def run(args: argparse.Namespace) -> int:
    """0 when all parts went well; 1 with what is off; environment.Refused before anything starts."""
    environment = project.wanted()

    from rehearsal.world import CannotStart, Lost, Project, World

    settings = environment.settings
    played = Project(
        id_=settings.project_id,
        number=settings.project_number or _NUMBER,
        region=settings.region,
        state_bucket=environment.names.state_bucket,
        services=list(SERVICES),
    )
    folder = args.folder.absolute()
    world = World(folder=folder, project=played, cache=_CACHE, settings=_overrides(os.environ), ours=folder == _FOLDER)
    try:
        with _leaving_on_signals(), world:
            return Show(world, environment).play(keep=args.keep)
    except (CannotStart, Lost) as error:
        raise Failed(str(error)) from error


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


def _overrides(process_env: Mapping[str, str]) -> dict[str, str]:
    """Where the settings are, and those that the process environment overrides: nothing else reaches the stacks."""
    keys = [field.name.upper() for field in fields(Settings)]
    overridden = {key: process_env[key] for key in keys if key in process_env}
    return {**overridden, project.FOLDER: str(project.folder())}


class Show:
    """The parts of a rehearsal, each with its time and what was wrong in it."""

    def __init__(self, world: World, environment: Environment) -> None:
        self.world = world
        self.environment = environment
        self.problems: list[str] = []
        self.deployed: set[str] = set()
        self.times: list[tuple[str, float, str]] = []

    def play(self, *, keep: bool) -> int:
        """All parts in order. What has to be deployed first is left out when it is not."""
        names = self.environment.names
        print(f"Rehearsing {names.cluster} in project {self.world.project.id_}: nothing of this is real.\n")
        if self._deploy():
            self._what_exists()
            self._deploy_again()
            self._submit()
            if keep:
                self._tell_how_to_look()
            else:
                self._refused_destroy()
                self._destroy()
        return self._summary()

    @contextlib.contextmanager
    def _part(self, title: str) -> Iterator[None]:
        print(f"{title}", flush=True)
        before, since = len(self.problems), time.monotonic()
        yield
        verdict = "ok" if len(self.problems) == before else "NOT OK"
        self.times.append((title, time.monotonic() - since, verdict))
        print(flush=True)

    def _wrong(self, problem: str) -> None:
        self.problems.append(problem)
        print(f"  NOT OK: {problem}", flush=True)

    def _cdktf(self, verb: str, settings: dict[str, str], *, tell: Callable[[Stack], None]) -> Run:
        from rehearsal import cdktf

        return cdktf.run(self.world, verb, tell=tell, settings=settings)

    def _failed(self, run: Run, words: str) -> None:
        self._wrong(words)
        for error in run.errors or [run.text[-2000:]]:
            print("    " + error.replace("\n", "\n    "))

    def _deploy(self) -> bool:
        with self._part("Deploy: cdktf deploy '*'"):
            run = self._cdktf("deploy", _PROTECTED, tell=_stack_line)
            self.deployed = {stack.name for stack in run.stacks}
            if run.code:
                self._failed(run, "the deployment failed")
        return not run.code

    def _what_exists(self) -> None:
        from rehearsal import report
        from rehearsal.jobs import quotas_off

        with self._part("What exists"):
            rows = report.by_stack(self.world.cloud, self.world.project.state_bucket)
            width = max((len(row.stack) for row in rows), default=0)
            for row in rows:
                facts = row.facts or [""]
                print(f"  {row.stack:{width}}  {row.resources:3} resources  {facts[0]}")
                for fact in facts[1:]:
                    print(f"  {'':{width}}  {'':13}  {fact}")
            for problem in quotas_off(self.world.cloud, self._cluster()):
                self._wrong(problem)

    def _deploy_again(self) -> None:
        with self._part("Deploy again: nothing may change"):
            run = self._cdktf("deploy", _PROTECTED, tell=_stack_line)
            if run.code:
                self._failed(run, "the second deployment failed")
            missing = self.deployed - {stack.name for stack in run.stacks}
            if missing:
                self._wrong(f"the second deployment did not come to {', '.join(sorted(missing))}")
            for stack in run.stacks:
                if not stack.unchanged:
                    self._wrong(f"{stack.name}: the second deployment changes something\n" + _changes(stack))

    def _submit(self) -> None:
        from rehearsal.jobs import submit

        with self._part("Submit hello-tpu"):
            team = self.environment.teams[0]
            manifest = self.world.output / "manifests" / team.name / team.pools[0] / "hello-tpu.yaml"
            submitted = submit(self.world, self._cluster(), manifest)
            for line in submitted.lines:
                print(f"  {line}")
            if not submitted.admitted:
                self._wrong("hello-tpu is not admitted")
            elif submitted.pods_without_node:
                self._wrong(f"hello-tpu has {submitted.pods_without_node} pods that no node pool carries")

    def _refused_destroy(self) -> None:
        with self._part("Destroy while protected: must be refused"):
            before = self.world.cloud.snapshot()
            run = self._cdktf("destroy", _PROTECTED, tell=_stack_line)
            gone = [f"{kind} {name}" for kind, name in before.keys() - self.world.cloud.snapshot().keys()]
            if run.code == 0:
                self._wrong("destroy was not refused")
            elif not any("prevent_destroy" in error for error in run.errors):
                self._failed(run, "destroy failed for another reason than its protection")
            if gone:
                self._wrong(f"{len(gone)} objects were destroyed all the same: {', '.join(sorted(gone)[:5])}")
            if run.code and not gone:
                first = next((error.splitlines()[0] for error in run.errors), "")
                print(f"  refused, nothing deleted: {first}")

    def _destroy(self) -> None:
        from rehearsal import report

        words = " ".join(f"{key}={value}" for key, value in _UNPROTECTED.items())
        with self._part(f"Destroy: {words} cdktf destroy '*'"):
            run = self._cdktf("destroy", _UNPROTECTED, tell=_stack_line)
            if run.code:
                self._failed(run, "destroy failed")
            left = report.remains(self.world.cloud, self.world.project.state_bucket)
            if left:
                self._wrong(f"{len(left)} things are left: {', '.join(left[:5])}")
            else:
                print("  nothing is left but the project, its enabled APIs and the state bucket")

    def _tell_how_to_look(self) -> None:
        world = self.world
        print(
            f"Kept: what exists is in {world.folder / 'cloud.db'} (SQLite), Terraform's folders are in {world.output}."
        )
        if sys.stdin.isatty():
            print("In another shell, this lets cdktf, terraform and curl meet the played cloud:")
            print(f"  . {quote(str(world.write_environment()))} && cd {quote(str(project.ROOT))}")
            print("  cdktf deploy queues --ignore-missing-stack-dependencies --skip-provider-lock \\")
            print(f"    --output {quote(str(world.output))}")
            print(f"  curl {world.address}/clusters/{self._cluster()}/apis/kueue.x-k8s.io/v1beta2/clusterqueues")
            with contextlib.suppress(EOFError):
                input("Enter ends it. ")
        print()

    def _cluster(self) -> str:
        from rehearsal.rules.gke import CLUSTER

        return self.world.cloud.find(CLUSTER)[0].name

    def _summary(self) -> int:
        print("Summary")
        width = max(len(title) for title, _, _ in self.times)
        for title, seconds, verdict in self.times:
            print(f"  {title:{width}}  {seconds:6.1f} s  {verdict}")
        print(f"  {'Whole rehearsal':{width}}  {sum(seconds for _, seconds, _ in self.times):6.1f} s")
        if self.problems:
            print(f"\n{len(self.problems)} problems:", file=sys.stderr)
            for problem in self.problems:
                print(f"  {problem.splitlines()[0]}", file=sys.stderr)
        return 1 if self.problems else 0


def _stack_line(stack: Stack) -> None:
    counts = ", ".join(f"{number} {word}" for word, number in stack.counts.items() if number)
    stopped = "refused" if "prevent_destroy" in stack.text else "stopped"
    words = stopped if stack.code else "no changes" if stack.unchanged else counts or "nothing to do"
    print(f"  {stack.name:16} {words}", flush=True)


def _changes(stack: Stack) -> str:
    """The part of a plan that says what would change."""
    marks = ("# ", "~ ", "+ ", "- ", "-/+ ")
    return "\n".join(f"    {line}" for line in stack.text.splitlines() if line.strip().startswith(marks))
