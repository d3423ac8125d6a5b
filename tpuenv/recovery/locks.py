"""The locks of a recovery: whose they are, whether their holder may still be at work, and their release on a yes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from environment import Environment
from tpuenv.failure import Failed
from tpuenv.google import builds
from tpuenv.google.clients import Clients
from tpuenv.state import locks
from tpuenv.state.locks import Lock
from tpuenv.terminal.dialog import Dialog


@dataclass(frozen=True, kw_only=True)
class HeldLocks:
    """`stale_after` is in seconds: with nobody to see a warning, a younger lock is kept whose holder cannot be seen."""

    environment: Environment
    clients: Clients
    dialog: Dialog
    dry_run: bool
    stale_after: float

    def kept(self, stacks: Sequence[str]) -> set[str]:
        """Shows the locks of these stacks and of the environment, "", and gives those that were not released."""
        print("Locks", flush=True)
        names = self.environment.names
        held = [lock for lock in locks.read_locks(self.clients, names) if lock.stack in ("", *stacks)]
        if not held:
            print("  none is held")
        # The environment's lock comes first and names the build. Terraform's, which that build holds too, only say who.
        gone: set[str] = set()
        working: dict[str, str] = {}
        kept = set()
        for lock in held:
            self.dialog.say(f"  {lock}")
            build = self._build(lock)
            at_work = self._at_work(lock, build) or working.get(lock.who, "")
            if build.at_work and lock.who != locks.UNKNOWN_HOLDER:
                working[lock.who] = at_work
            elif build.over and lock.who != locks.UNKNOWN_HOLDER:
                gone.add(lock.who)
            if not self._released(lock, at_work, doubtful=self._doubtful(lock, build, held, gone)):
                kept.add(lock.stack)
        return kept

    def _build(self, lock: Lock) -> builds.Known:
        """What Cloud Build says of the build that took the lock, told to the person too."""
        id_ = match[1] if (match := re.search(r"(?:^|, )build ([0-9A-Za-z-]{1,64})$", lock.info)) else ""
        if not id_:
            return builds.NONE
        region = self.environment.settings.build_region
        try:
            known = builds.known(self.clients, id_, region=region)
        except Failed as failure:
            print(f"    It cannot be told whether build {id_} still runs: {failure}")
            print(f"    Ask:  gcloud builds describe {id_} --region={region}", flush=True)
            return builds.NONE
        print(f"    Cloud Build says that build {id_} is {known}", flush=True)
        return known

    def _at_work(self, lock: Lock, build: builds.Known) -> str:
        """Who works with the lock as far as that can be seen, or ""."""
        if processes := locks.running_processes(lock, self.environment.names):
            print(f"    At work on this machine: process {', '.join(map(str, processes))}")
            return f"process {processes[0]}"
        return f"build {build.id_}" if build.at_work else ""

    def _doubtful(self, lock: Lock, build: builds.Known, held: Sequence[Lock], gone: set[str]) -> bool:
        """Whether its holder may be at work where that is not seen: on another machine, not long enough ago.

        Whoever holds the environment's own lock takes one stack's after the other.
        """
        if lock.on_this_machine or lock.who in gone or build.over:
            return False
        same = held if not lock.stack else [lock]
        return any(not each.on_this_machine and each.is_younger(self.stale_after) for each in same)

    def _released(self, lock: Lock, at_work: str, *, doubtful: bool) -> bool:
        if doubtful and not at_work:
            print("    It is of another machine: make sure that whoever took it is gone.")
        if at_work and self.dialog.careful:
            self.dialog.leave(f"{lock}: wait for {at_work}, or end it")
            return False
        if doubtful and self.dialog.careful and not self.dry_run:
            self.dialog.leave(
                f"{lock}: its holder, on another machine, may be at work: wait; or see that it is gone, then add "
                "--stale-after 0m"
            )
            return False
        if not self.dialog.ask("Release it?"):
            self.dialog.leave(f"{lock}: not released")
            return False
        released = locks.release_lock(self.clients, self.environment.names, lock)
        print("    released" if released else "    it was gone already, or is another's by now", flush=True)
        return True
