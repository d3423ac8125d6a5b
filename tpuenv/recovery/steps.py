"""The parts of a recovery in their order: bucket, locks, states, objects."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from environment import Environment
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from tpuenv.recovery.locks import HeldLocks
from tpuenv.recovery.objects import Objects
from tpuenv.recovery.states import damaged, mend
from tpuenv.review import records
from tpuenv.review.plans import initialize
from tpuenv.state import locks
from tpuenv.state.bucket import ensure_state_bucket, state_objects
from tpuenv.terminal.dialog import Dialog
from tpuenv.terraform.process import Terraform
from tpuenv.terraform.stacks import Stack

# A recovery that another one waits for is soon over; a deploy is not, and neither should go on beside the other.
_WAIT_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """One recovery of these stacks, which are synthesized."""

    environment: Environment
    clients: Clients
    stacks: Sequence[Stack]
    dialog: Dialog
    dry_run: bool
    stale_after: float = 0  # seconds: tpuenv/recovery/locks.py
    new_bucket: bool = False  # with nobody to ask, whether a state bucket that is gone is made anew
    quick: bool = False  # what Terraform has just worked with need not be made ready again
    _locked: set[str] = field(default_factory=set)  # stacks whose lock was not released
    _lost: set[str] = field(default_factory=set)  # stacks whose state is of no use

    def run(self) -> int:
        """The exit code: 1 when something is left to do by hand. Raises Failed."""
        if not self._bucket():
            return self._told()
        names = self.environment.names
        held = HeldLocks(
            environment=self.environment,
            clients=self.clients,
            dialog=self.dialog,
            dry_run=self.dry_run,
            stale_after=self.stale_after,
        )
        self._locked.update(held.kept([stack.name for stack in self.stacks]))
        if "" in self._locked and not self.dry_run:
            self.dialog.say("\nStates and objects are not looked at, because the environment is locked.")
            return self._told()
        print("\nStates", flush=True)
        for stack in self.stacks:
            if not mend(self.clients, names, stack, self.dialog, locked=stack.name in self._locked):
                self._lost.add(stack.name)
        print("\nObjects", flush=True)
        with self._alone():
            for stack in self.stacks:
                self._objects(stack)
        return self._told()

    def _objects(self, stack: Stack) -> None:
        if stack.name in self._lost or (stack.name in self._locked and not self.dry_run):
            self.dialog.say(
                f"  {stack.name}: not looked at, because of its {'state' if stack.name in self._lost else 'lock'}"
            )
            return
        try:
            self._objects_of(stack).own()
        except Failed as failure:
            self.dialog.leave(f"{stack.name}: {str(failure).removeprefix(f'{stack.name}: ')}")

    def findings(self) -> list[str]:
        """Locks and what is in no state, a line each. Changes nothing. Raises Failed."""
        names = self.environment.names
        if not self._has_bucket():
            return [
                f"The state bucket gs://{names.state_bucket} is gone: do not make a new one, restore it if you can."
            ]
        wanted = {stack.name for stack in self.stacks}
        lines = [
            f"Locked: {lock}"
            for lock in locks.read_locks(self.clients, names)
            if lock.stack in wanted or not (lock.stack or lock.by_this_user)
        ]
        for stack in self.stacks:
            if damage := damaged(self.clients, names, stack):
                lines.append(damage)
                continue
            try:
                lines += self._objects_of(stack).lines()
            except Failed as failure:
                lines.append(f"{stack.name}: what is in no state cannot be found: {failure}")
        return lines

    def _objects_of(self, stack: Stack) -> Objects:
        """Where Terraform was just at work, it is ready to go on."""
        ready = self.quick and (stack.folder / ".terraform").exists()
        terraform = Terraform(stack=stack) if ready else initialize(stack)
        return Objects(clients=self.clients, terraform=terraform, dialog=self.dialog)

    def _alone(self) -> AbstractContextManager[None]:
        """No deploy of a build goes on at the same time."""
        if self.dry_run:
            return contextlib.nullcontext()
        names = self.environment.names
        info = locks.run_info(records.commit())
        return locks.hold_lock(self.clients, names, operation="recover", info=info, wait=_WAIT_SECONDS)

    def _has_bucket(self) -> bool:
        return state_objects(self.clients, self.environment.names).bucket_exists()

    def _bucket(self) -> bool:
        """Whether there is a bucket to go on with."""
        names, settings = self.environment.names, self.environment.settings
        if self._has_bucket():
            return True
        print(
            f"The state bucket gs://{names.state_bucket} is gone. Google keeps a deleted bucket for some days, and all "
            "states in it:\n"
            f"  gcloud storage buckets list --soft-deleted --project={settings.project_id}\n"
            f"  gcloud storage restore gs://{names.state_bucket}#GENERATION\n"
            "bring it back, as long as there is no new one of its name. With a new one, what exists is imported."
        )
        if not self._make_anew():
            return False
        done = ensure_state_bucket(
            self.clients,
            name=names.state_bucket,
            region=settings.region,
            labels={"environment": settings.resource_prefix, "stack": "bootstrap"},
            project_number=settings.project_number,
            dry_run=False,
            anew=True,
        )
        for line in done:
            self.dialog.say(f"  {line[0].upper()}{line[1:]}")
        return True

    def _make_anew(self) -> bool:
        """Whether a new bucket is meant, which makes the old one unreachable: nobody says so by a plain --yes."""
        name = self.environment.names.state_bucket
        meant = self.new_bucket if self.dialog.careful and not self.dry_run else None
        if self.dialog.ask(f"Make bucket {name} anew?") if meant is None else meant:
            return True
        self.dialog.leave(
            f"gs://{name} is gone: bring it back as said above, then recover again. If Google does not list it any "
            "more: tpuenv recover --yes --new-bucket"
        )
        return False

    def _told(self) -> int:
        print()
        if self.dialog.left:
            print("Found; nothing was changed:" if self.dry_run else "Left for you to do:")
            for line in self.dialog.left:
                print(f"  {line}")
            print("Next: tpuenv recover" if self.dry_run else "Next: tpuenv recover, when that is done")
            return 1
        print("All that was wrong is put right." if self.dialog.asked else "Nothing is wrong.")
        print(self._next)
        return 0

    @property
    def _next(self) -> str:
        names, settings = self.environment.names, self.environment.settings
        if not settings.build_repository:
            return "Next: tpuenv deploy"
        return (
            "Next: deploy through the pipeline, what was merged last, and approve it:\n"
            f"  gcloud builds triggers run {names.trigger('deploy')} --region={settings.build_region} "
            f"--branch={settings.build_branch}\n"
            "What no build deploys, a person does:  tpuenv deploy foundation pipeline"
        )
