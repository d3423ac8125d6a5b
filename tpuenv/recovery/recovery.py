"""The parts of `tpuenv recover` in their order: bucket, locks, states, objects."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from environment import Environment
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from tpuenv.recovery.abandoned_locks import LockRelease
from tpuenv.recovery.imports import import_objects
from tpuenv.recovery.lost_states import repair_state
from tpuenv.review import records
from tpuenv.review.plans import initialize
from tpuenv.state.bucket import ensure_state_bucket, state_objects
from tpuenv.state.locks import ENVIRONMENT, hold_lock, run_info
from tpuenv.terminal.dialog import Dialog
from tpuenv.terraform.stacks import Stack

# Another recovery ends within this time; a deploy does not, and neither may run beside the other.
_WAIT_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """One recovery of these stacks, which are synthesized."""

    environment: Environment
    clients: Clients
    stacks: Sequence[Stack]
    dialog: Dialog
    dry_run: bool
    stale_after: float = 0  # seconds: tpuenv/recovery/abandoned_locks.py
    new_bucket: bool = False  # with --yes, whether a state bucket that is gone is replaced
    _locked: set[str] = field(default_factory=set)  # stacks whose lock was not released
    _lost: set[str] = field(default_factory=set)  # stacks whose state Terraform cannot use

    def run(self) -> int:
        """The exit code: 1 when something is left to do by hand. Raises Failed."""
        if not self._bucket():
            return self._summary()
        names = self.environment.names
        lock_release = LockRelease(
            environment=self.environment,
            clients=self.clients,
            dialog=self.dialog,
            dry_run=self.dry_run,
            stale_after=self.stale_after,
        )
        self._locked.update(lock_release.run([stack.name for stack in self.stacks]))
        if ENVIRONMENT in self._locked and not self.dry_run:
            self.dialog.say("\nStates and objects are not checked, because the environment is locked.")
            return self._summary()
        print("\nStates", flush=True)
        for stack in self.stacks:
            if not repair_state(self.clients, names, stack, self.dialog, locked=stack.name in self._locked):
                self._lost.add(stack.name)
        print("\nObjects", flush=True)
        with self._lock():
            for stack in self.stacks:
                self._objects(stack)
        return self._summary()

    def _bucket(self) -> bool:
        """Whether there is a state bucket, perhaps a new one."""
        names, settings = self.environment.names, self.environment.settings
        if state_objects(self.clients, names).bucket_exists():
            return True
        print(
            f"The state bucket gs://{names.state_bucket} is gone. Google keeps a deleted bucket for some days, and all "
            "states in it. This restores it, as long as there is no new one of its name:\n"
            f"  gcloud storage buckets list --soft-deleted --project={settings.project_id}\n"
            f"  gcloud storage restore gs://{names.state_bucket}#GENERATION\n"
            "With a new one, what exists is imported."
        )
        if not self._creates_bucket():
            return False
        done = ensure_state_bucket(
            self.clients,
            name=names.state_bucket,
            region=settings.region,
            labels={"environment": settings.resource_prefix, "stack": "bootstrap"},
            project_number=settings.project_number,
            dry_run=False,
            replace_deleted=True,
        )
        for line in done:
            self.dialog.say(f"  {line[0].upper()}{line[1:]}")
        return True

    def _creates_bucket(self) -> bool:
        """Whether to create a bucket, which makes the old one unreachable: a plain --yes does not mean that."""
        name = self.environment.names.state_bucket
        if self.dialog.unattended and not self.dry_run:
            create = self.new_bucket
        else:
            create = self.dialog.ask(f"Create a new bucket {name}?")
        if not create:
            self.dialog.leave(
                f"gs://{name} is gone: restore it as said above, then recover again. If Google does not list it any "
                "more: tpuenv recover --yes --new-bucket"
            )
        return create

    def _objects(self, stack: Stack) -> None:
        if stack.name in self._lost or (stack.name in self._locked and not self.dry_run):
            reason = "state" if stack.name in self._lost else "lock"
            self.dialog.say(f"  {stack.name}: not checked, because of its {reason}")
            return
        try:
            import_objects(self.clients, initialize(stack), self.dialog)
        except Failed as failure:
            self.dialog.leave(f"{stack.name}: {str(failure).removeprefix(f'{stack.name}: ')}")

    def _lock(self) -> AbstractContextManager[None]:
        """No build may deploy at the same time."""
        if self.dry_run:
            return contextlib.nullcontext()
        info = run_info(records.commit())
        return hold_lock(self.clients, self.environment.names, operation="recover", info=info, wait=_WAIT_SECONDS)

    def _summary(self) -> int:
        print()
        if self.dialog.to_do:
            print("Nothing was changed; this is to do:" if self.dry_run else "Left for you to do:")
            for line in self.dialog.to_do:
                print(f"  {line}")
            print("Next: tpuenv recover" if self.dry_run else "Next: tpuenv recover, when that is done")
            return 1
        print("All that was wrong is corrected." if self.dialog.questions else "Nothing is wrong.")
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
