"""A log that is followed arrives line by line, as a kubelet sends it: in chunks, over a connection that may end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests

from tests.tpuenv.jobs.conftest import QUICK
from tpuenv.kubernetes.client import Cluster

Send = Callable[[bytes], None]


@contextmanager
def serving(send_all: Callable[[Send], None]) -> Iterator[Cluster]:
    """A server that answers with what `send_all` sends, each piece a chunk, and then ends the connection without the
    last chunk.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            send_all(lambda piece: self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece)) and self.wfile.flush())
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}"
            yield Cluster(address=address, name="c", session=requests.Session(), patience=QUICK)
        finally:
            server.shutdown()
            thread.join()


def test_a_line_is_there_before_the_next_is_written_and_a_line_in_two_chunks_is_one() -> None:
    read = threading.Event()

    def send(chunk: Send) -> None:
        chunk(b"one\ntw")
        read.wait()
        chunk(b"o\nthree")

    with serving(send) as cluster:
        lines = cluster.log("research", "pod", follow=True)
        assert next(lines) == b"one"
        read.set()
        assert list(lines) == [b"two"], "a connection that is lost ends it, and a line that is not whole comes again"


def test_a_log_to_which_nothing_is_added_for_a_while_ends_so_that_the_job_is_looked_at() -> None:
    over = threading.Event()

    def send(chunk: Send) -> None:
        chunk(b"one\n")
        over.wait()

    with serving(send) as cluster:
        assert list(cluster.log("research", "pod", follow=True)) == [b"one"]
        over.set()
