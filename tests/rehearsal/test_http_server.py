"""The HTTP server of the fake cloud."""

from __future__ import annotations

import socket
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
