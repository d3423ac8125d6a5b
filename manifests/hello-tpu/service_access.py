"""Whether this pod is kept from the Services of other namespaces: a connection to any of them must not come about."""

from __future__ import annotations

import socket
from collections.abc import Sequence

_OPEN = "reached"
_SECONDS = 5.0  # a NetworkPolicy drops packets, so the wait for an answer ends by itself alone


def check(addresses: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """What became of a connection to each HOST:PORT: "refused", "reached" or "no such name"; and what is wrong."""
    tried = {address: _try(address) for address in addresses}
    problems = [f"service {address}: reached, and must be refused" for address, said in tried.items() if said == _OPEN]
    return tried, problems


def _try(address: str) -> str:
    host, _, port = address.rpartition(":")
    try:
        (*_, where), *_ = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return "no such name"
    try:
        with socket.create_connection(where[:2], timeout=_SECONDS):
            return _OPEN
    except OSError:
        return "refused"
