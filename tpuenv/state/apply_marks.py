"""Which recorded plan of a stack is applied in part: a mark beside the stack's state.

What is left of a plan may be applied without another approval, but only while nothing else was applied or destroyed
since. So a stack has at most one mark, and every apply or destroy replaces or removes it.
"""

from __future__ import annotations

from environment.names import Names
from tpuenv.google.clients import Clients
from tpuenv.state.bucket import state_objects


def object_name(names: Names, stack: str) -> str:
    """The mark's object in the state bucket."""
    return f"{names.state_prefix}/{stack}/unfinished"


def unfinished(clients: Clients, names: Names, stack: str) -> str:
    """The key of the record whose apply has not ended, or "". Raises Failed."""
    stored = state_objects(clients, names).read(object_name(names, stack), what="read the mark of an apply")
    return stored.content.decode("utf-8", errors="replace") if stored else ""


def begin(clients: Clients, names: Names, stack: str, key: str) -> None:
    """Marks that an apply of the record under this key begins. Raises Failed."""
    state_objects(clients, names).write(object_name(names, stack), key, what="write the mark of an apply")


def end(clients: Clients, names: Names, stack: str) -> None:
    """Removes the mark: nothing is left of any plan of the stack. Raises Failed."""
    state_objects(clients, names).delete(object_name(names, stack), what="delete the mark of an apply")
