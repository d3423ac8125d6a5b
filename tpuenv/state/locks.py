"""Locks in the state bucket: Terraform's own, one a stack, and one over the whole environment.

Terraform locks a stack's state while it works on it. `tpuenv apply`, `destroy` and `recover` hold the environment's
lock over all stacks. Both are objects with the same fields, which are written only if there is no such object yet.
https://developer.hashicorp.com/terraform/language/state/locking
"""

from __future__ import annotations

import getpass
import json
import os
import re
import signal
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from environment.names import Names
from environment.project import STORAGE_ENDPOINT
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from tpuenv.google.storage import ABSENT
from tpuenv.state.bucket import state_objects
from vocabulary.printable import shortened

ENVIRONMENT = ""  # in place of a stack's name: the lock over the whole environment
UNKNOWN_HOLDER = "somebody"
_LONGEST = 300  # characters of a field that are shown


class Locked(Failed):
    """Another run has held the lock for as long as this one would wait."""


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lock that is held, of a stack or the ENVIRONMENT.

    `generation` is Cloud Storage's, of this lock and no later one; `info` is what the holder says of itself, `process`
    its id on its machine, which Terraform does not write.
    """

    stack: str
    generation: int
    id_: str
    who: str
    operation: str
    created: str
    info: str = ""
    process: int | None = None

    def __str__(self) -> str:
        what = f"the state of {self.stack}" if self.stack else "the environment"
        info = f"; {self.info}" if self.info else ""
        return f"{what} is held by {self.who}, {self.operation}, since {self.created}{self._age}{info}"

    @property
    def seconds(self) -> float | None:
        """How old it is; None when it does not say."""
        text = re.sub(r"\.\d+", "", self.created).replace("Z", "+00:00")
        try:
            since = datetime.fromisoformat(text)
        except ValueError:
            return None
        aware = since if since.tzinfo else since.replace(tzinfo=timezone.utc)
        return (datetime.now(timezone.utc) - aware).total_seconds()

    def is_younger(self, seconds: float) -> bool:
        """Whether it was taken less than that long ago; a lock that does not say when was taken just now."""
        return max(self.seconds or 0, 0) < seconds

    @property
    def on_this_machine(self) -> bool:
        """Whether it was taken on this machine, whose processes can be listed."""
        return self.who.endswith(f"@{socket.gethostname()}")

    @property
    def by_this_user(self) -> bool:
        """Whether this user of this machine took it."""
        return self.who == _user()

    @property
    def _age(self) -> str:
        if self.seconds is None or self.seconds < 0:
            return ""
        minutes = int(self.seconds // 60)
        return f" ({minutes} min ago)" if minutes < 120 else f" ({minutes // 60} h ago)"


def lock_name(names: Names, stack: str = ENVIRONMENT) -> str:
    """The lock's object in the state bucket: the environment's, or where the `gcs` backend keeps a stack's.

    https://developer.hashicorp.com/terraform/language/backend/gcs
    """
    return f"{names.state_prefix}/{stack}/default.tflock" if stack else f"{names.state_prefix}/deploy.lock"


def read_locks(clients: Clients, names: Names) -> list[Lock]:
    """All locks that are held, the environment's first. Raises Failed."""
    pattern = re.compile(re.escape(names.state_prefix) + r"/(?:([^/]+)/default\.tflock|deploy\.lock)")
    blobs = state_objects(clients, names).list_objects(f"{names.state_prefix}/", what="list the locks")
    stacks = sorted(match[1] or ENVIRONMENT for blob in blobs if (match := pattern.fullmatch(blob.name)))
    locks = (read_lock(clients, names, stack) for stack in stacks)
    return [lock for lock in locks if lock is not None]  # one may have been released since the list


def read_lock(clients: Clients, names: Names, stack: str = ENVIRONMENT) -> Lock | None:
    """The lock, if it is held. What it holds may be anything. Raises Failed."""
    stored = state_objects(clients, names).read(lock_name(names, stack), what="read a lock")
    if stored is None:
        return None
    try:
        fields = json.loads(stored.content)
    except (ValueError, RecursionError):
        fields = {}
    fields = fields if isinstance(fields, dict) else {}

    def text(field: str, default: str = "") -> str:
        return shortened(str(fields.get(field) or default), longest=_LONGEST)

    return Lock(
        stack=stack,
        generation=stored.generation,
        id_=str(fields.get("ID") or ""),
        who=text("Who", UNKNOWN_HOLDER),
        operation=text("Operation", "an unknown operation").removeprefix("OperationType").lower(),
        created=text("Created", "an unknown time"),
        info=text("Info"),
        process=process if isinstance(process := fields.get("Process"), int) else None,
    )


def release_lock(clients: Clients, names: Names, lock: Lock) -> bool:
    """Deletes that lock and no later one. False when it was released already. Raises Failed."""
    return state_objects(clients, names).delete(
        lock_name(names, lock.stack), what="release a lock", generation=lock.generation
    )


def run_info(commit: str) -> str:
    """What distinguishes one run from another: its commit, and in a build of Cloud Build the build's id."""
    build = os.environ.get("BUILD_ID")
    return f"commit {commit}" + (f", build {build}" if build else "")


@contextmanager
def hold_lock(
    clients: Clients, names: Names, stack: str = ENVIRONMENT, *, operation: str, info: str = "", wait: float = 0
) -> Iterator[None]:
    """Holds the lock inside. Waits at most `wait` seconds for it, then raises Locked, which names the holder."""
    fields: dict[str, str | int] = {
        "ID": str(uuid.uuid4()),
        "Operation": operation,
        "Info": info,
        "Who": _user(),
        "Version": "",
        "Created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "Path": f"gs://{names.state_bucket}/{lock_name(names, stack)}",
        "Process": os.getpid(),
    }
    try:
        _acquire(clients, names, stack, fields, wait)
        yield
    finally:
        # Also when a signal came before the answer that the lock is ours. A second one does not leave the lock behind.
        with _signals_ignored():
            lock = read_lock(clients, names, stack)
            if lock is not None and lock.id_ == fields["ID"]:
                release_lock(clients, names, lock)


def _acquire(clients: Clients, names: Names, stack: str, fields: Mapping[str, str | int], wait: float) -> None:
    bucket, name = state_objects(clients, names), lock_name(names, stack)
    began = time.monotonic()
    last_line = began - clients.patience.line
    while not bucket.write(name, json.dumps(fields), what="take a lock", over=ABSENT):
        lock = read_lock(clients, names, stack)
        if lock is not None and lock.id_ == fields["ID"]:
            return  # Written the first time, and only the answer was lost.
        waited = time.monotonic() - began
        reason = f"{lock}" if lock else "a run that held a lock has just ended"
        if waited >= wait:
            raise Locked(
                f"Locked: {reason}. Waited {waited:.0f} s.\n"
                "If that run is still going, wait for it. If it was killed, `tpuenv recover` releases the lock."
            )
        if began + waited - last_line >= clients.patience.line:
            last_line = began + waited
            clients.say(
                f"Locked: {reason}. Waiting ({waited:.0f} of {wait:.0f} s). If that run was killed, `tpuenv recover` "
                "releases the lock."
            )
        time.sleep(min(clients.patience.poll, max(wait - waited, 0.1)))


@contextmanager
def _signals_ignored() -> Iterator[None]:
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _user() -> str:
    """As Terraform writes it into its locks."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def running_processes(lock: Lock, names: Names, *, proc: Path = Path("/proc")) -> list[int]:
    """The ids of the processes on this machine that work with the lock; none where it is of another machine.

    Those are Terraforms on the locked state; for the environment's lock its holder, and Terraforms on any state of it.
    """
    if not lock.on_this_machine:
        return []
    prefixes = re.compile(re.escape(names.state_prefix) + "/" + (re.escape(lock.stack) or "[^/]+"))
    processes = {int(folder.name): folder for folder in sorted(proc.glob("[0-9]*"))}
    return [
        pid
        for pid, folder in processes.items()
        if pid != os.getpid()
        and (_is_terraform_on(folder, names.state_bucket, prefixes) or (pid == lock.process and _is_tpuenv(folder)))
    ]


def _is_terraform_on(process: Path, bucket: str, prefixes: re.Pattern[str]) -> bool:
    """By the configuration in its folder, and the endpoint of Cloud Storage in its environment."""
    try:
        program = (process / "cmdline").read_bytes().split(b"\0")[0]
        if not re.search(rb"(terraform|tofu)[^/]*$", program):
            return False
        backend = json.loads((process / "cwd" / "cdk.tf.json").read_text())["terraform"]["backend"]["gcs"]
        variables = dict(line.partition(b"=")[::2] for line in (process / "environ").read_bytes().split(b"\0"))
        same_state = backend["bucket"] == bucket and prefixes.fullmatch(backend["prefix"]) is not None
    except (OSError, ValueError, KeyError, TypeError):
        return False
    endpoint = variables.get(STORAGE_ENDPOINT.encode(), b"").decode(errors="replace")
    return same_state and endpoint == os.environ.get(STORAGE_ENDPOINT, "")


def _is_tpuenv(process: Path) -> bool:
    """Not another program that was given the same id since."""
    try:
        return bool(re.search(rb"\btpuenv\b", (process / "cmdline").read_bytes()))
    except OSError:
        return False
