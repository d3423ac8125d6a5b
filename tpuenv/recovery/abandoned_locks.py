"""The locks of a recovery: who holds them, whether the holder may still be at work, and their release after a yes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from environment import Environment
from tpuenv.failure import Failed
from tpuenv.google.builds import NO_BUILD, BuildStatus, read_build
from tpuenv.google.clients import Clients
from tpuenv.state.locks import ENVIRONMENT, UNKNOWN_HOLDER, Lock, read_locks, release_lock, running_processes
from tpuenv.terminal.dialog import Dialog


@dataclass(frozen=True, kw_only=True)
class LockRelease:
    """Shows locks, and releases them after a question.

    With --yes a lock of another machine is kept, whose holder cannot be seen, while it is younger than `stale_after`,
    in seconds.
    """

    environment: Environment
    clients: Clients
    dialog: Dialog
    dry_run: bool
    stale_after: float

    def run(self, stacks: Sequence[str]) -> set[str]:
        """Of these stacks and the ENVIRONMENT, those whose locks are still held. Raises Failed."""
        print("Locks", flush=True)
        locks = [
            lock for lock in read_locks(self.clients, self.environment.names) if lock.stack in (ENVIRONMENT, *stacks)
        ]
        if not locks:
            print("  none is held")
        # The environment's lock comes first and names the build. Terraform's locks, which that build holds too, only
        # name the user.
        at_work_by_holder: dict[str, str] = {}
        ended_holders: set[str] = set()
        still_held = set()
        for lock in locks:
            self.dialog.say(f"  {lock}")
            build = self._build(lock)
            at_work = self._at_work(lock, build) or at_work_by_holder.get(lock.who, "")
            if build.running and lock.who != UNKNOWN_HOLDER:
                at_work_by_holder[lock.who] = at_work
            elif build.ended and lock.who != UNKNOWN_HOLDER:
                ended_holders.add(lock.who)
            ended = build.ended or lock.who in ended_holders
            if not self._release(lock, at_work, may_be_at_work=not ended and self._may_be_at_work(lock, locks)):
                still_held.add(lock.stack)
        return still_held

    def _build(self, lock: Lock) -> BuildStatus:
        """What Cloud Build says of the build that took the lock; it is printed as well."""
        id_ = match[1] if (match := re.search(r"(?:^|, )build ([0-9A-Za-z-]{1,64})$", lock.info)) else ""
        if not id_:
            return NO_BUILD
        region = self.environment.settings.build_region
        try:
            build = read_build(self.clients, id_, region=region)
        except Failed as failure:
            print(f"    It is not known whether build {id_} still runs: {failure}")
            print(f"    Ask:  gcloud builds describe {id_} --region={region}", flush=True)
            return NO_BUILD
        print(f"    Cloud Build says that build {id_} is {build.status}", flush=True)
        return build

    def _at_work(self, lock: Lock, build: BuildStatus) -> str:
        """The process or build that is known to work with the lock, or ""."""
        if processes := running_processes(lock, self.environment.names):
            print(f"    At work on this machine: process {', '.join(map(str, processes))}")
            return f"process {processes[0]}"
        return f"build {build.id_}" if build.running else ""

    def _may_be_at_work(self, lock: Lock, locks: Sequence[Lock]) -> bool:
        """Whether the holder may be at work where that cannot be seen: on another machine, not long enough ago.

        The holder of the environment's lock takes the stacks' locks one after the other: a young one counts for both.
        """
        if lock.on_this_machine:
            return False
        same_run = [lock] if lock.stack else locks
        return any(not one.on_this_machine and one.is_younger(self.stale_after) for one in same_run)

    def _release(self, lock: Lock, at_work: str, *, may_be_at_work: bool) -> bool:
        """Whether the lock is released."""
        if may_be_at_work and not at_work:
            print("    It is of another machine: make sure that the run that took it has ended.")
        if at_work and self.dialog.unattended:
            self.dialog.leave(f"{lock}: wait for {at_work}, or end it")
            return False
        if may_be_at_work and self.dialog.unattended and not self.dry_run:
            self.dialog.leave(
                f"{lock}: its holder, on another machine, may be at work: wait; or see that it has ended, then add "
                "--stale-after 0m"
            )
            return False
        if not self.dialog.ask("Release it?"):
            self.dialog.leave(f"{lock}: not released")
            return False
        released = release_lock(self.clients, self.environment.names, lock)
        print("    released" if released else "    it was released already, or another run holds it now", flush=True)
        return True
