"""`tpuenv apply`: deploys what was reviewed and nothing else, stack by stack."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from environment import Environment, project
from tpuenv.commands.options import add_waiting
from tpuenv.failure import Failed, WrongArgument
from tpuenv.recovery import advice
from tpuenv.review import records
from tpuenv.review.comparison import verdict
from tpuenv.review.plans import PLAN_FILE, Plan, PlanFailed, initialize, plan_stack
from tpuenv.terraform.process import Terraform
from tpuenv.terraform.stacks import OUTPUT, PIPELINE, Stack, selected_stacks, synthesize

if TYPE_CHECKING:
    from tpuenv.google.clients import Clients
    from tpuenv.review.records import Store

NOT_REVIEWED = 3

_DESCRIPTION = """\
For each stack, in their order: plans it, compares that with the record that
`tpuenv plan --record` made of the same content, and applies that very plan if it
does nothing that was not reviewed. A plan that differs stops it. A stack that has
no record, could not be planned at review, or differs only because somebody changed
the cloud by hand since, is shown and recorded, and approval is asked for by running
the trigger again for the same commit: after that it counts as reviewed. A record is
good for one apply: after that, whatever is planned is shown and asked for as well.
Nothing to do: on to the next. The pipeline stack is left out: a person deploys it.

Only one apply or destroy of an environment runs at a time; another waits for it.
Stopped half-way, it goes on where it stopped when it is run again, with what is left
of the plan on record; anything else is shown and asked for.
"""

_EPILOG = """\
examples:
  tpuenv apply --reviewed gs://BUCKET --ask TRIGGER
  tpuenv plan --record plans && less plans/*/*.json && tpuenv apply --reviewed plans

Exit codes: 0 all is applied, or approval was asked for; 1 it could not be done, or
differs from what was reviewed; 2 wrong settings or arguments; 3 approval is needed
and no trigger was given to ask for it; 130 interrupted; 143 ended by SIGTERM.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "apply",
        help="deploy what was reviewed, and nothing else",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stacks", nargs="*", metavar="STACK", help=f"only these; all but {PIPELINE} if none is named")
    parser.add_argument(
        "--reviewed",
        metavar="RECORDS",
        required=True,
        help="gs://BUCKET or the local folder that `tpuenv plan --record` wrote to",
    )
    parser.add_argument("--ask", metavar="TRIGGER", help="the Cloud Build trigger whose next build is to be approved")
    add_waiting(parser)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to synthesize (default: cdktf.out)")


def run(args: argparse.Namespace) -> int:
    wanted = project.real()
    if PIPELINE in args.stacks:
        raise Failed(
            f"{PIPELINE}: a build must not change its own identity; a person runs `tpuenv deploy foundation {PIPELINE}`"
        )
    if not args.reviewed.startswith("gs://") and not Path(args.reviewed).is_dir():
        raise WrongArgument(
            f"--reviewed: '{args.reviewed}' is no folder here, so nothing in it was reviewed; name gs://BUCKET, or the "
            "folder that `tpuenv plan --record` wrote to"
        )
    # Not before the settings are known to be good: Google's libraries take a second to load.
    from tpuenv.google.clients import connect
    from tpuenv.state.locks import Locked, hold_lock, run_info

    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(128 + signal.SIGTERM))
    clients = connect(wanted.settings.project_id)
    store = records.store(args.reviewed, wanted)
    stacks = synthesize(args.output.absolute())
    work = Apply(
        environment=wanted,
        clients=clients,
        records=args.reviewed,
        store=store,
        stacks=selected_stacks(stacks, args.stacks),
        key=records.digest(stacks),
        commit=records.commit(),
        trigger=args.ask,
        lock_timeout=args.lock_timeout,
    )
    info = run_info(work.commit)
    try:
        with hold_lock(clients, wanted.names, operation="apply", info=info, wait=args.wait):
            return work.run()
    except Locked as locked:
        raise Failed(f"{locked}\n\n{advice.found(wanted, work.stacks)}") from locked


@dataclass(frozen=True, kw_only=True)
class Apply:
    """One apply: of which stacks, compared with which records, and whom to ask."""

    environment: Environment
    clients: Clients
    records: str
    store: Store
    stacks: Sequence[Stack]
    key: str
    commit: str
    trigger: str | None
    lock_timeout: str

    def run(self) -> int:
        """The exit code. Raises Failed."""
        for stack in self.stacks:
            try:
                if not self._reviewed_and_applied(initialize(stack)):
                    return self._ask(stack)
            except PlanFailed as failure:
                raise Failed(f"{failure}{advice.told(self.environment, [stack], failure.output)}") from failure
            finally:
                (stack.folder / PLAN_FILE).unlink(missing_ok=True)
        print(f"\nDone: {', '.join(stack.name for stack in self.stacks)}")
        return 0

    def _reviewed_and_applied(self, terraform: Terraform) -> bool:
        """False when nobody has reviewed what would happen; it is recorded then."""
        # As in run: Google's libraries take a second to load.
        from tpuenv.state import apply_marks

        stack, names = terraform.stack, self.environment.names
        planned = plan_stack(terraform, salt=self.key, lock=[f"-lock-timeout={self.lock_timeout}"])
        planned.show()
        if planned.missing:
            raise Failed(f"{stack.name}: {planned.heading}; apply the stacks before it first")
        if planned.empty:
            # An apply that was killed at its very end did not say so.
            apply_marks.end(self.clients, names, stack.name)
            return True
        reviewed = self.store.read(self.key, stack.name)
        found = verdict(
            reviewed,
            planned.changes,
            unfinished=apply_marks.unfinished(self.clients, names, stack.name) == self.key,
        )
        if found.ask:
            place = self.store.write(planned.record(self.key, self.commit))
            print(f"\n{stack.name}: not reviewed yet: {found.ask}. The plan above is recorded now: {place}")
            return False
        assert reviewed is not None
        if found.refuse:
            raise Failed(self._different(stack, reviewed.commit, found.refuse))
        # In this order, so that a stop in between costs one more approval.
        self.store.write(replace(reviewed, begun=True))
        apply_marks.begin(self.clients, names, stack.name, self.key)
        self._apply(terraform, planned)
        apply_marks.end(self.clients, names, stack.name)
        return True

    def _apply(self, terraform: Terraform, planned: Plan) -> None:
        stack = planned.stack
        print(f"\n{stack.name}: as reviewed; applying it", flush=True)
        done = terraform.run(
            "apply", "-input=false", "-no-color", f"-lock-timeout={self.lock_timeout}", PLAN_FILE, shown=True
        )
        if done.returncode:
            told = advice.told(self.environment, [stack], done.stdout, code=done.returncode)
            raise Failed(
                f"\n{stack.name}: Terraform stopped before all of it was applied. What was made is in the state, and "
                f"the next apply goes on from there.{told}"
            )

    def _ask(self, stack: Stack) -> int:
        rest = [each.name for each in self.stacks[self.stacks.index(stack) :]]
        print(f"Waiting for approval: {', '.join(rest)}. What came before is applied.")
        if self.trigger is None:
            print("Nobody was asked (--ask names a trigger). When the plan above is approved, run this command again.")
            return NOT_REVIEWED
        from tpuenv.google import triggers

        settings = self.environment.settings
        trigger = triggers.trigger_name(self.trigger, project_id=settings.project_id, location=settings.build_region)
        page = triggers.ask(self.clients, trigger=trigger, commit=self.commit)
        print(f"Read the plan above, then approve the next build of {self.trigger} at\n  {page}")
        return 0

    def _different(self, stack: Stack, commit: str, found: Sequence[str]) -> str:
        lines = "\n".join(f"  {line}" for line in found)
        again = f"`tpuenv plan --record {self.records}`"
        if self.trigger is not None:
            again = f"the trigger {self.environment.names.trigger('plan')} for commit {self.commit}"
        return (
            f"\n{stack.name}: not what was reviewed (commit {commit}); nothing of it was applied:\n{lines}\n"
            f"Something changed since: the cloud, or another commit was deployed. Run {again}, read what it says now, "
            "then run this deploy again."
        )
