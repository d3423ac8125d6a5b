"""The HTTP server of the fake cloud."""

from __future__ import annotations

import socket
import sqlite3
import struct

import pytest

from rehearsal import http_server


def test_a_client_that_is_killed_while_it_is_connected_prints_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    server, _ = http_server.start(lambda _: http_server.Response())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        accepted, address = listening.accept()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() resets the connection
    client.close()
    server.process_request_thread(accepted, address)
    server.shutdown()
    server.server_close()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("closed", "printed"), [(False, True), (True, False)])
def test_a_request_that_fails_because_the_cloud_is_closed_under_it_prints_no_traceback(
    capsys: pytest.CaptureFixture[str], closed: bool, printed: bool
) -> None:
    """While the server serves, it does: it is a mistake of the fake cloud."""

    def fail(_: http_server.Request) -> http_server.Response:
        if closed:
            server.server_close()
        raise sqlite3.ProgrammingError("Cannot operate on a closed database.")

    server, _ = http_server.start(fail)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        accepted, address = listening.accept()
    client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    server.shutdown()
    server.process_request_thread(accepted, address)
    client.close()
    server.server_close()
    assert ("closed database" in capsys.readouterr().err) == printed
