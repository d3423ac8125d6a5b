"""The locks in the state bucket: Terraform's, one a stack, and the one over the whole environment."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from google.api_core.exceptions import NotFound, PreconditionFailed

from environment.names import Names
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from tpuenv.state import environment_lock
from vocabulary.printable import shortened

_ROLE = "roles/storage.objectUser"

SOMEBODY = "somebody"  # holds a lock that does not say who
_LONGEST = 300

_PLACE = "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT"


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lock that is held. `stack` is empty for the environment's own; `generation` is Cloud Storage's, of this lock
    and no later one. `info` is what the holder says about itself, `process` its id, where it tells that.
    """

    object_name: str
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

    def younger(self, seconds: float) -> bool:
        """Whether it was taken less than that long ago; one that does not say when was taken just now."""
        return max(self.seconds or 0, 0) < seconds

    @property
    def here(self) -> bool:
        """Whether somebody took it on this machine, where a process can be looked for."""
        return self.who.endswith(f"@{socket.gethostname()}")

    @property
    def ours(self) -> bool:
        """Whether this user of this machine took it."""
        return self.who == whoami()

    @property
    def _age(self) -> str:
        if self.seconds is None or self.seconds < 0:
            return ""
        minutes = int(self.seconds // 60)
        return f" ({minutes} min ago)" if minutes < 120 else f" ({minutes // 60} h ago)"


def whoami() -> str:
    """As Terraform writes it into its locks."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def state_name(names: Names, stack: str) -> str:
    """Where the `gcs` backend keeps a stack's state. https://developer.hashicorp.com/terraform/language/backend/gcs"""
    return f"{names.state_prefix}/{stack}/default.tfstate"


def lock_name(names: Names, stack: str) -> str:
    """The lock beside it."""
    return f"{names.state_prefix}/{stack}/default.tflock"


def held(clients: Clients, names: Names) -> list[Lock]:
    """All locks that are held, the environment's own first. Raises Failed."""
    whole = environment_lock.object_name(names)
    pattern = re.compile(re.escape(names.state_prefix) + r"/([^/]+)/default\.tflock")
    found = []
    with _asking(clients, names, "read the locks", "list"):
        bucket = clients.storage.bucket(names.state_bucket)
        blobs = clients.storage.list_blobs(
            bucket, prefix=f"{names.state_prefix}/", retry=clients.retry, timeout=clients.patience.answer
        )
        for blob in blobs:
            matched = pattern.fullmatch(blob.name)
            if not matched and blob.name != whole:
                continue
            with suppress(NotFound):  # released in between
                text = blob.download_as_bytes(retry=clients.retry, timeout=clients.patience.answer)
                found.append(_lock(blob.name, matched[1] if matched else "", int(blob.generation), text))
    return sorted(found, key=lambda lock: lock.stack)


def _lock(object_name: str, stack: str, generation: int, text: bytes) -> Lock:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = {}
    fields = fields if isinstance(fields, dict) else {}
    return Lock(
        object_name=object_name,
        stack=stack,
        generation=generation,
        id_=str(fields.get("ID") or ""),
        who=_short(fields.get("Who") or SOMEBODY),
        operation=_short(fields.get("Operation") or "an unknown operation").removeprefix("OperationType").lower(),
        created=_short(fields.get("Created") or "an unknown time"),
        info=_short(fields.get("Info") or ""),
        process=process if isinstance(process := fields.get("Process"), int) else None,
    )


def _short(value: object) -> str:
    return shortened(str(value), longest=_LONGEST)


def release(clients: Clients, names: Names, lock: Lock) -> bool:
    """Deletes that lock and no other; False when it was gone, or is another's by now. Raises Failed."""
    with _asking(clients, names, f"release {lock.object_name}", "delete"):
        try:
            clients.storage.bucket(names.state_bucket).blob(lock.object_name).delete(
                if_generation_match=lock.generation, retry=clients.retry, timeout=clients.patience.answer
            )
        except (NotFound, PreconditionFailed):
            return False
    return True


@contextmanager
def taken(clients: Clients, names: Names, stack: str, *, operation: str) -> Iterator[None]:
    """Holds a stack's lock inside, as Terraform does. Raises Failed when somebody else holds it."""
    name = lock_name(names, stack)
    fields = {
        "ID": str(uuid.uuid4()),
        "Operation": operation,
        "Info": "",
        "Who": whoami(),
        "Version": "",
        "Created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "Path": f"gs://{names.state_bucket}/{name}",
    }
    blob = clients.storage.bucket(names.state_bucket).blob(name)
    with _asking(clients, names, f"lock the state of {stack}", "create"):
        try:
            blob.upload_from_string(json.dumps(fields), if_generation_match=0, timeout=clients.patience.answer)
        except PreconditionFailed as error:
            other = next((str(lock) for lock in held(clients, names) if lock.stack == stack), "somebody holds it")
            raise Failed(f"Locked: {other}. `tpuenv recover` releases it, if that run is gone") from error
    try:
        yield
    finally:
        with _asking(clients, names, f"release {name}", "delete"), suppress(NotFound, PreconditionFailed):
            blob.delete(if_generation_match=int(blob.generation), timeout=clients.patience.answer)


def living(lock: Lock, names: Names, *, processes: Path = Path("/proc")) -> list[int]:
    """The process ids on this machine that work with the lock; none where that cannot be seen.

    Those are Terraforms on the locked state; for the environment's lock its holder, and Terraforms on any state of it.
    """
    if not lock.here:
        return []
    prefixes = re.compile(re.escape(names.state_prefix) + "/" + (re.escape(lock.stack) or "[^/]+"))
    found = [
        int(each.name)
        for each in sorted(processes.glob("[0-9]*"))
        if _works_on(each, names.state_bucket, prefixes) or (int(each.name) == lock.process and _is_ours(each))
    ]
    return [pid for pid in found if pid != os.getpid()]


def _works_on(process: Path, bucket: str, prefixes: re.Pattern[str]) -> bool:
    """By the configuration in its folder, and the place of Cloud Storage in its environment."""
    try:
        program = (process / "cmdline").read_bytes().split(b"\0")[0]
        if not re.search(rb"(terraform|tofu)[^/]*$", program):
            return False
        backend = json.loads((process / "cwd" / "cdk.tf.json").read_text())["terraform"]["backend"]["gcs"]
        place = _variable((process / "environ").read_bytes().split(b"\0"))
        works = backend["bucket"] == bucket and prefixes.fullmatch(backend["prefix"]) is not None
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return works and place == os.environ.get(_PLACE, "")


def _is_ours(process: Path) -> bool:
    """Not another one that has got the id since."""
    try:
        return bool(re.search(rb"\btpuenv\b", (process / "cmdline").read_bytes()))
    except OSError:
        return False


def _variable(environ: Sequence[bytes]) -> str:
    start = f"{_PLACE}=".encode()
    return next((each[len(start) :].decode(errors="replace") for each in environ if each.startswith(start)), "")


def _asking(clients: Clients, names: Names, what: str, verb: str) -> Any:
    return clients.asking(f"{what} in gs://{names.state_bucket}", permission=f"storage.objects.{verb}", role=_ROLE)
