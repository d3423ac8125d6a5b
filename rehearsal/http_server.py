"""One HTTP server on this machine, on a free port, for everything of the fake cloud that is spoken to over HTTP."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

_POLL_SECONDS = 0.01  # how soon the server notices that it is to stop


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request; header names are in lower case, the path is as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Response:
    """What goes back."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpError(Exception):
    """An answer that is an error, in the form that Google's APIs give it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    def response(self) -> Response:
        return json_response({"error": {"code": self.status, "message": self.message}}, status=self.status)


def json_response(body: Any, *, status: int = 200) -> Response:
    """A response of JSON."""
    return Response(status=status, body=json.dumps(body).encode(), headers={"Content-Type": "application/json"})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    closed = False

    def server_close(self) -> None:
        self.closed = True
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing where the client was killed, or where the server has gone during the request; else a traceback."""
        if not self.closed and not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def start(serve: Callable[[Request], Response]) -> tuple[ThreadingHTTPServer, str]:
    """The running server and its address, "http://127.0.0.1:<port>"."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet an answer: of two, the second waits 40 ms until the first is acknowledged

        def _serve(self) -> None:
            address = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(
                method=self.command,
                path=address.path,
                query=dict(parse_qsl(address.query, keep_blank_values=True)),
                headers={key.lower(): value for key, value in self.headers.items()},
                body=body or self._chunked(),
            )
            try:
                response = serve(request)
            except HttpError as error:
                response = error.response()
            self.send_response(response.status)
            for key, value in response.headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(response.body)

        def _chunked(self) -> bytes:
            out = b""
            while self.headers.get("Transfer-Encoding") == "chunked":
                size = int(self.rfile.readline().split(b";")[0], 16)
                out += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    break
            return out

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _serve

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: what matters is in the answers."""

    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"
