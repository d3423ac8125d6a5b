"""One apply or destroy of an environment at a time: a lock in the state bucket, beside the stacks' states.

Terraform locks one stack's state while it works on that; this lock is held over all stacks. It is made as Terraform's
own are, an object that is written only if there is none, with the same fields, and the id of the process.
"""

from __future__ import annotations

import getpass
import json
import os
import signal
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from google.api_core.exceptions import NotFound, PreconditionFailed

from environment.names import Names
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients

_ROLE = "roles/storage.objectUser"


class Locked(Failed):
    """Somebody else has held the lock for as long as this run would wait."""


def object_name(names: Names) -> str:
    """The lock's object in the state bucket."""
    return f"{names.state_prefix}/deploy.lock"


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who holds the lock. `generation` is Cloud Storage's, so that this lock and no later one is released."""

    id_: str
    operation: str
    who: str
    created: str
    info: str
    generation: int

    def __str__(self) -> str:
        info = f" ({self.info})" if self.info else ""
        return f"{self.who}, {self.operation} since {self.created}{info}"


def holder(clients: Clients, names: Names) -> Holder | None:
    """Who holds the lock now, if anybody does. Raises Failed."""
    with _asking(clients, names, "read"):
        try:
            blob = clients.storage.bucket(names.state_bucket).blob(object_name(names))
            text = blob.download_as_bytes(retry=clients.retry, timeout=clients.patience.answer)
        except NotFound:
            return None
    fields = _fields(text)
    return Holder(
        id_=str(fields.get("ID", "")),
        operation=str(fields.get("Operation") or "an unknown operation"),
        who=str(fields.get("Who") or "somebody"),
        created=str(fields.get("Created") or "an unknown time"),
        info=str(fields.get("Info") or ""),
        generation=int(blob.generation),
    )


def release(clients: Clients, names: Names, held: Holder) -> bool:
    """Deletes that lock; False when it was gone, or is another's by now. Raises Failed."""
    with _asking(clients, names, "delete"):
        try:
            clients.storage.bucket(names.state_bucket).blob(object_name(names)).delete(
                if_generation_match=held.generation, retry=clients.retry, timeout=clients.patience.answer
            )
        except (NotFound, PreconditionFailed):
            return False
    return True


def info(commit: str) -> str:
    """What tells one run from another: its commit, and in a build of Cloud Build the build's id."""
    build = os.environ.get("BUILD_ID")
    return f"commit {commit}" + (f", build {build}" if build else "")


@contextmanager
def held(clients: Clients, names: Names, *, operation: str, info: str, wait: float) -> Iterator[None]:
    """Holds the lock inside, and waits at most `wait` seconds for it. Raises Locked, naming the holder, after that."""
    id_ = str(uuid.uuid4())
    fields: dict[str, str | int] = {
        "ID": id_,
        "Operation": operation,
        "Info": info,
        "Who": f"{getpass.getuser()}@{socket.gethostname()}",
        "Created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "Path": f"gs://{names.state_bucket}/{object_name(names)}",
        "Process": os.getpid(),
    }
    try:
        _acquire(clients, names, fields, wait)
        yield
    finally:
        # Also when a signal came before it was known whether the lock is ours.
        with _undisturbed():
            ours = holder(clients, names)
            if ours is not None and ours.id_ == id_:
                release(clients, names, ours)


def _acquire(clients: Clients, names: Names, fields: Mapping[str, str | int], wait: float) -> None:
    began = time.monotonic()
    said = began - clients.patience.line
    while not _write(clients, names, fields):
        found = holder(clients, names)
        if found is not None and found.id_ == fields["ID"]:
            return  # Written the first time, and only the answer was lost.
        waited = time.monotonic() - began
        by = found or "a run that has ended just now"
        if waited >= wait:
            raise Locked(
                f"Locked: environment {names.prefix} is held by {by}; waited {waited:.0f} s.\n"
                "If that run is still going, wait for it. If it was killed, `tpuenv recover` releases the lock."
            )
        if began + waited - said >= clients.patience.line:
            said = began + waited
            clients.say(
                f"Environment {names.prefix} is held by {by}; waiting ({waited:.0f} of {wait:.0f} s). If that run is "
                "gone, `tpuenv recover` releases the lock."
            )
        time.sleep(min(clients.patience.poll, max(wait - waited, 0.1)))


def _write(clients: Clients, names: Names, fields: Mapping[str, str | int]) -> bool:
    """Whether the lock was free, and is now ours."""
    with _asking(clients, names, "make"):
        try:
            clients.storage.bucket(names.state_bucket).blob(object_name(names)).upload_from_string(
                json.dumps(fields),
                content_type="application/json",
                if_generation_match=0,
                retry=clients.retry,
                timeout=clients.patience.answer,
            )
        except PreconditionFailed:
            return False
        except NotFound as error:
            raise Failed(
                f"No state bucket: gs://{names.state_bucket} is not there. If there was one, do not make another: "
                "`tpuenv recover` says how Google gives it back. Only for a project that never had one, an "
                "administrator makes it: `tpuenv bootstrap`"
            ) from error
    return True


def _fields(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _asking(clients: Clients, names: Names, verb: str) -> Any:
    what = f"{verb} the lock gs://{names.state_bucket}/{object_name(names)}"
    return clients.asking(what, permission=f"storage.objects.{_PERMISSIONS[verb]}", role=_ROLE)


_PERMISSIONS = {"read": "get", "make": "create", "delete": "delete"}


@contextmanager
def _undisturbed() -> Iterator[None]:
    """An impatient second signal does not leave the lock behind."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
