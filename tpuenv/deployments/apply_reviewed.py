"""Applies what was reviewed and nothing else, stack by stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from environment import Environment
from tpuenv.failure import Failed
from tpuenv.recovery import advice
from tpuenv.review.comparison import unreviewed
from tpuenv.review.plans import PLAN_FILE, Plan, PlanFailed, initialize, plan_stack
from tpuenv.state import apply_marks
from tpuenv.terraform.process import Terraform
from tpuenv.terraform.stacks import Stack

if TYPE_CHECKING:
    from tpuenv.google.clients import Clients
    from tpuenv.review.records import Store

NOT_REVIEWED = 3


@dataclass(frozen=True, kw_only=True)
class ReviewedApply:
    """One apply: its stacks, the records that they are compared with, and the trigger that asks for approval.

    `key` is the digest of what is deployed.
    """

    environment: Environment
    clients: Clients
    store: Store
    stacks: Sequence[Stack]
    key: str
    commit: str
    trigger: str | None
    lock_timeout: str

    def run(self) -> int:
        """Applies the stacks up to the first that needs approval; the exit code. Raises Failed."""
        for number, stack in enumerate(self.stacks):
            try:
                if not self._reviewed_and_applied(initialize(stack)):
                    self._record_what_can_be_planned(self.stacks[number + 1 :])
                    return self._ask_for_approval(stack)
            except PlanFailed as failure:
                raise Failed(f"{failure}{advice.after_failure(self.environment, [stack], failure.output)}") from failure
            finally:
                (stack.folder / PLAN_FILE).unlink(missing_ok=True)
        print(f"\nDone: {', '.join(stack.name for stack in self.stacks)}")
        return 0

    def _reviewed_and_applied(self, terraform: Terraform) -> bool:
        """False when nobody has reviewed what would change; the plan is recorded then."""
        stack, names = terraform.stack, self.environment.names
        planned = self._planned(terraform)
        planned.show()
        if planned.missing:
            raise Failed(f"{stack.name}: {planned.heading}; apply the stacks before it first")
        if planned.empty:
            # An apply that was killed at its very end has left its mark.
            apply_marks.end(self.clients, names, stack.name)
            return True
        reviewed = self.store.read(self.key, stack.name)
        unfinished = apply_marks.unfinished(self.clients, names, stack.name) == self.key
        if why := unreviewed(reviewed, planned.changes, unfinished=unfinished):
            self._record(planned, why)
            return False
        assert reviewed is not None
        # In this order, so that a stop in between costs one more approval.
        self.store.write(replace(reviewed, begun=True))
        apply_marks.begin(self.clients, names, stack.name, self.key)
        self._apply(terraform, planned)
        apply_marks.end(self.clients, names, stack.name)
        return True

    def _planned(self, terraform: Terraform) -> Plan:
        return plan_stack(terraform, salt=self.key, lock=[f"-lock-timeout={self.lock_timeout}"])

    def _record(self, planned: Plan, why: str) -> None:
        place = self.store.write(planned.record(self.key, self.commit))
        print(f"\n{planned.stack.name}: not reviewed yet: {why}. The plan above is recorded now: {place}")

    def _record_what_can_be_planned(self, stacks: Sequence[Stack]) -> None:
        """The stacks that could not be planned at review, so that one approval is for all that can be by now."""
        for stack in stacks:
            reviewed = self.store.read(self.key, stack.name)
            if reviewed is not None and not reviewed.not_plannable:
                continue
            try:
                planned = self._planned(initialize(stack))
            except PlanFailed as failure:
                print(f"\n{failure}")
                continue
            finally:
                (stack.folder / PLAN_FILE).unlink(missing_ok=True)
            if not planned.missing and not planned.empty:
                planned.show()
                self._record(planned, unreviewed(reviewed, planned.changes, unfinished=False))

    def _apply(self, terraform: Terraform, planned: Plan) -> None:
        stack = planned.stack
        print(f"\n{stack.name}: as reviewed; applying it", flush=True)
        done = terraform.run(
            "apply", "-input=false", "-no-color", f"-lock-timeout={self.lock_timeout}", PLAN_FILE, shown=True
        )
        if done.returncode:
            steps = advice.after_failure(self.environment, [stack], done.stdout, code=done.returncode)
            raise Failed(
                f"\n{stack.name}: Terraform stopped before all of it was applied. What was created is in the state, "
                f"and the next apply goes on from there.{steps}"
            )

    def _ask_for_approval(self, stack: Stack) -> int:
        rest = [later.name for later in self.stacks[self.stacks.index(stack) :]]
        print(f"Waiting for approval: {', '.join(rest)}. The stacks before are applied.")
        if self.trigger is None:
            print("Nobody was asked (--ask names a trigger). When the plan above is approved, run this command again.")
            return NOT_REVIEWED
        from tpuenv.google import triggers

        settings = self.environment.settings
        trigger = triggers.trigger_name(self.trigger, project_id=settings.project_id, location=settings.build_region)
        page = triggers.run_trigger(self.clients, trigger=trigger, commit=self.commit)
        print(f"Read the plan above, then approve the next build of {self.trigger} at\n  {page}")
        return 0
