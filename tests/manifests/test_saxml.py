"""Saxml's client as people start it, against a fake of the HTTP server in the two forms that its images have."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from manifests.recipes import FOLDER
from tests.python_program import run_in_this_process

PROGRAM = FOLDER / "saxml" / "saxml.py"
SPMD = "/sax/test/spmd"
PATH = "saxml.server.pax.lm.params.lm_cloud.LmCloudSpmd175B32Test"


@dataclass
class Saxml:
    """Two model servers behind the HTTP server of v1.0.0 or of a later one; `later` says which.

    A model is assigned to a server more with every look at it, and answers from the second question on.
    """

    later: bool = False
    servers: int = 2
    assigned: int = 0  # to how many a model is assigned when it is published
    keeps: bool = False  # what is unpublished stays
    texts: list[Any] = field(default_factory=lambda: [["seven", -1.5], ["eight", -2.5]])
    raw: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # answers by path, in place of the right ones
    slow: set[str] = field(default_factory=set)  # paths that are never answered
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    loading: set[str] = field(default_factory=set)
    address: str = ""
    has_been_asked: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        model = body.get("model", "")
        if (method, path) == ("POST", "/publish"):
            if model in self.models:
                return self.error(f"model {model} already exists: already exists")
            self.models[model] = {**body, "assigned": self.assigned}
            self.loading.add(model)
            keys = {"model_path": "model_path" if self.later else "path"}
            return 200, {keys.get(key, key): value for key, value in body.items()}
        if model not in self.models:
            return self.error(f"model {model} not found: not found")
        known = self.models[model]
        if (method, path) == ("GET", "/listcell"):
            known["assigned"] = min(known["assigned"] + 1, self.servers, known["replicas"])
            rest = {"max_replicas": known["replicas"], "active_replicas": known["assigned"]}
            return 200, {**{key: known[key] for key in ("model", "model_path", "checkpoint")}, **rest}
        if (method, path) == ("POST", "/generate"):
            if model in self.loading:
                self.loading.remove(model)
                return self.error("no server for it is ready")
            return 200, self.texts if self.later else {"generate_response": self.texts}
        if not self.keeps:
            del self.models[model]
        return 200, {"model": model}

    def error(self, message: str) -> tuple[int, Any]:
        return (500, {"detail": message}) if self.later else (400, {"Error": message})

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-I", str(PROGRAM), *self.arguments(*words)]

    def arguments(self, *words: str) -> list[str]:
        return ["--server", self.address, *words]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_in_this_process(PROGRAM, *self.arguments(*words))


BOTH = pytest.mark.parametrize("saxml", [False, True], ids=["v1.0.0", "later"], indirect=True)


@pytest.fixture
def saxml(request: pytest.FixtureRequest) -> Iterator[Saxml]:
    made = Saxml(later=getattr(request, "param", False))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made.asked.append((self.command, self.path, body))
            made.has_been_asked.set()
            if self.path in made.slow:
                made.ended.wait()
                return
            code, answer = made.raw.get(self.path) or made.answer(self.command, self.path, body)
            self.send_response(code)
            self.end_headers()
            self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    made.address = f"http://127.0.0.1:{server.server_address[1]}"
    yield made
    made.ended.set()
    server.shutdown()
    server.server_close()


def failed(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that says why."""
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    return line


@BOTH
def test_a_model_is_published_listed_asked_and_unpublished_and_each_step_checked(saxml: Saxml) -> None:
    published = saxml.run("publish", "spmd", "--replicas", "2")
    assert (published.returncode, published.stderr) == (0, "")
    assert published.stdout.splitlines()[-1] == f"{SPMD} answers; it is assigned to 2 of 2 servers"
    sent = {"model": SPMD, "model_path": PATH, "checkpoint": "None", "replicas": 2}
    assert saxml.asked[0] == ("POST", "/publish", sent), "an HTTP server of v1.0.0 takes exactly these keys"
    assert [path for _, path, _ in saxml.asked[-2:]] == ["/listcell", "/generate"], "asked until it answered"
    listed = saxml.run("list", "spmd")
    assert (listed.returncode, listed.stdout) == (0, f"{SPMD}: {PATH}, checkpoint None\nassigned to 2 of 2 servers\n")
    asked = saxml.run("generate", SPMD, "How many?")
    assert (asked.returncode, asked.stdout) == (0, "seven\neight\n")
    assert saxml.asked[-1] == ("POST", "/generate", {"model": SPMD, "query": "How many?"})
    gone = saxml.run("unpublish", "spmd")
    assert (gone.returncode, gone.stdout) == (0, f"{SPMD} is not published any more\n")
    assert failed(saxml.run("list", "spmd")).endswith(f": model {SPMD} not found: not found")


@BOTH
def test_a_name_that_is_taken_is_refused_in_saxmls_words(saxml: Saxml) -> None:
    assert saxml.run("publish", "spmd").returncode == 0
    line = failed(saxml.run("publish", "spmd"))
    code = 500 if saxml.later else 400
    said = f"model {SPMD} already exists: already exists"
    assert line == f"publish: {saxml.address}/publish answers {code}: {said}"


def test_a_model_that_too_few_servers_take_is_not_ready(saxml: Saxml) -> None:
    saxml.assigned = 2
    line = failed(saxml.run("publish", "spmd", "--replicas", "3", "--wait", "0.5"))
    said = f"{SPMD} is published, and not ready after 0.5 s: it is assigned to 2 of 3 servers; no other"
    assert line.startswith(f"publish: {said} model server has taken it")
    assert "/generate" not in [path for _, path, _ in saxml.asked]


def test_a_model_that_never_loads_is_not_ready_although_it_is_assigned(saxml: Saxml) -> None:
    saxml.raw["/generate"] = 400, b'{"Error": "out of memory"}'
    line = failed(saxml.run("publish", "spmd", "--wait", "0.5"))
    assert "it is assigned to 1 of 1 servers; " in line
    assert ": out of memory; `tpuenv logs RUN` says" in line


def test_a_model_that_gives_no_answer_while_it_loads_is_not_waited_for_as_for_any_answer(saxml: Saxml) -> None:
    saxml.slow.add("/generate")
    line = failed(saxml.run("publish", "spmd", "--wait", "0.5"))
    assert "/generate gives no answer within 1 s" in line


def test_whatever_a_model_answers_does_nothing_to_the_terminal(saxml: Saxml) -> None:
    assert saxml.run("publish", "spmd").returncode == 0
    saxml.texts = [["two\nlines \x1b[2J\ud800 ä", 0.0]]
    assert saxml.run("generate", "spmd", "a").stdout == "two\nlines \\x1b[2J\\ud800 ä\n"


def test_an_answer_without_text_is_none(saxml: Saxml) -> None:
    assert saxml.run("publish", "spmd").returncode == 0
    for texts in ([], [["", 1.0]], [[1.0, "text"]], "text"):
        saxml.texts = texts  # type: ignore[assignment]
        assert failed(saxml.run("generate", "spmd", "a")).endswith(", and no text")


def test_a_model_that_is_still_there_is_not_unpublished(saxml: Saxml) -> None:
    assert saxml.run("publish", "spmd").returncode == 0
    saxml.keeps = True
    line = failed(saxml.run("unpublish", "spmd", "--wait", "0.5"))
    assert line == f"unpublish: {SPMD} is still published 0.5 s after it was unpublished"


def test_an_error_of_another_kind_does_not_count_as_gone(saxml: Saxml) -> None:
    assert saxml.run("publish", "spmd").returncode == 0
    saxml.raw["/listcell"] = 500, b"the admin server is away"
    assert failed(saxml.run("unpublish", "spmd")).endswith("/listcell answers 500: the admin server is away")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b'{"model": ', 'answers no JSON but \'{"model":'),
        (b"[" * 100_000, "answers no JSON but '[[["),
        (b"\xff\x1b[2J\n", "answers no JSON but "),
        (b"[]", "/listcell answers [], without what it should say of /sax/test/spmd"),
        (b'{"model": "/sax/test/spmd", "active_replicas": "2"}', "without what it should say of"),
        (
            b'{"model": "/sax/test/a", "model_path": "b", "checkpoint": "c", "max_replicas": 1, "active_replicas": 1}',
            "/listcell answers with model /sax/test/a where /sax/test/spmd was asked for",
        ),
    ],
    ids=["cut off", "deep", "binary", "a list", "a text for a number", "another model"],
)
def test_an_answer_that_makes_no_sense_is_named(saxml: Saxml, answer: bytes, said: str) -> None:
    saxml.raw["/listcell"] = 200, answer
    line = failed(saxml.run("list", "spmd"))
    assert said in line
    assert line.isprintable()
    assert len(line) < 1000


@pytest.mark.parametrize("command", ["publish", "unpublish"])
def test_an_answer_about_another_model_is_not_taken_for_done(saxml: Saxml, command: str) -> None:
    saxml.raw[f"/{command}"] = 200, b'{"model": "/sax/test/other", "replicas": 1}'
    assert f'/{command} answers {{"model": "/sax/test/other"' in failed(saxml.run(command, "spmd"))


def test_a_server_that_does_not_answer_or_is_not_there_is_named(saxml: Saxml) -> None:
    saxml.slow.add("/listcell")
    assert failed(saxml.run("--timeout", "0.2", "list", "spmd")).endswith("/listcell gives no answer within 0.2 s")
    saxml.address = "http://127.0.0.1:9"
    assert failed(saxml.run("list", "spmd")).endswith(
        "cannot be reached ([Errno 111] Connection refused); check --server, and that the run is running"
    )
    saxml.address = "http://a..b:8888"
    assert "http://a..b:8888/listcell cannot be reached (" in failed(saxml.run("list", "spmd"))


def test_ctrl_c_ends_it_with_a_line(saxml: Saxml) -> None:
    saxml.slow.add("/listcell")
    with subprocess.Popen(saxml.command("list", "spmd"), stderr=subprocess.PIPE, text=True) as process:
        assert saxml.has_been_asked.wait(timeout=60)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "list: interrupted; Saxml goes on with what it was asked for\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["publish", "spmd", "--replicas", "0"], "'0' is no number from 1 to 9999"),
        (["unpublish", "spmd", "--wait", "soon"], "'soon' is no number of seconds; write one such as 600"),
        (["--server", "10.0.0.9:8888", "list", "a"], "'10.0.0.9:8888' is no address of a server; write http://HOST"),
        (["lst", "spmd"], "invalid choice: 'lst'"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_asked(saxml: Saxml, words: list[str], said: str) -> None:
    done = saxml.run(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert saxml.asked == []
