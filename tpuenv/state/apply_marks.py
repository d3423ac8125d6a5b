"""Of which recorded plan an apply has begun and not ended: a mark beside the stack's state.

What is left of a plan may be applied without another approval, but only while nothing else was applied or destroyed
since. So there is one mark a stack, and whatever begins next takes its place or removes it.
"""

from __future__ import annotations

from typing import Any

from google.api_core.exceptions import NotFound

from environment.names import Names
from tpuenv.google.clients import Clients

_ROLE = "roles/storage.objectUser"


def object_name(names: Names, stack: str) -> str:
    """The mark's object in the state bucket."""
    return f"{names.state_prefix}/{stack}/unfinished"


def digest(clients: Clients, names: Names, stack: str) -> str:
    """The key of the record whose apply has not ended, or "". Raises Failed."""
    with _asking(clients, names, stack, "read", "get"):
        try:
            text = _blob(clients, names, stack).download_as_bytes(retry=clients.retry, timeout=clients.patience.answer)
        except NotFound:
            return ""
    return str(text.decode("utf-8", errors="replace"))


def begin(clients: Clients, names: Names, stack: str, key: str) -> None:
    """An apply of the record under this key begins. Raises Failed."""
    with _asking(clients, names, stack, "write", "create"):
        _blob(clients, names, stack).upload_from_string(key, retry=clients.retry, timeout=clients.patience.answer)


def end(clients: Clients, names: Names, stack: str) -> None:
    """Nothing is left of any plan of the stack. Raises Failed."""
    with _asking(clients, names, stack, "delete", "delete"):
        try:
            _blob(clients, names, stack).delete(retry=clients.retry, timeout=clients.patience.answer)
        except NotFound:
            return


def _blob(clients: Clients, names: Names, stack: str) -> Any:
    return clients.storage.bucket(names.state_bucket).blob(object_name(names, stack))


def _asking(clients: Clients, names: Names, stack: str, verb: str, permission: str) -> Any:
    what = f"{verb} gs://{names.state_bucket}/{object_name(names, stack)}"
    return clients.asking(what, permission=f"storage.objects.{permission}", role=_ROLE)
