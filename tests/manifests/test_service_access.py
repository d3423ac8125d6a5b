"""What hello-tpu finds out about Services of others, with real sockets."""

from __future__ import annotations

import runpy
import socket
from collections.abc import Callable, Iterator, Sequence

import pytest

from manifests.recipes import FOLDER

Check = Callable[[Sequence[str]], tuple[dict[str, str], list[str]]]


@pytest.fixture
def check() -> Check:
    found: Check = runpy.run_path(str(FOLDER / "hello-tpu" / "service_access.py"))["check"]
    return found


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_service_that_takes_a_connection_is_a_problem(check: Check, listening: str) -> None:
    assert check([listening]) == ({listening: "reached"}, [f"service {listening}: reached, and must be refused"])


def test_a_service_that_takes_none_is_as_it_must_be(check: Check) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    assert check([closed]) == ({closed: "refused"}, [])


@pytest.mark.parametrize("address", ["dashboard.invalid:8265", "127.0.0.1", "127.0.0.1:many"])
def test_an_address_that_cannot_be_tried_counts_as_neither(check: Check, address: str) -> None:
    assert check([address]) == ({address: "no such name"}, [])
