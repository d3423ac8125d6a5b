"""Publishes, lists, asks and unpublishes a model through the HTTP server of Saxml, and checks what it answers.

    python3 saxml.py --server http://10.0.0.9:8888 publish spmd MODEL_PATH --replicas 2
    python3 saxml.py --server http://10.0.0.9:8888 list spmd
    python3 saxml.py --server http://10.0.0.9:8888 generate spmd "How many days are in a week?"
    python3 saxml.py --server http://10.0.0.9:8888 unpublish spmd

A name without slashes is one in the cell /sax/test, which the recipe's admin server serves. Standard library only.
Exit codes: 0 done and checked, 1 not, with one line that says why, 2 wrong arguments, 130 interrupted.

The requests are those of Google's guide for GKE, and the two forms of answers those of the images v1.0.0 and later:
https://cloud.google.com/kubernetes-engine/docs/tutorials/tpu-multihost-saxml
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

CELL = "/sax/test"
TEST_MODEL = "saxml.server.pax.lm.params.lm_cloud.LmCloudSpmd175B32Test"
QUERY = "How many days are in a week?"  # what a model that was just published is asked
LONGEST_PAUSE = 10.0  # seconds between two looks at a model
LONGEST_MESSAGE = 300  # characters of an answer of the server's

# What is said of a model that is not published: saxml v1.1.0, saxml/admin/mgr.go and saxml/client/go/admin.go
_NOT_PUBLISHED = re.compile(r"not[ _]?found|found 0", re.IGNORECASE)


class NotDone(Exception):
    """What was not done, and why, in one line."""


class Refused(NotDone):
    """The HTTP server answers that Saxml could not do it."""


class Server:
    """The HTTP server at an address; `timeout` is for one answer, in seconds."""

    def __init__(self, address: str, timeout: float) -> None:
        self._address = address.rstrip("/")
        self._timeout = timeout
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is in a private network

    def ask(self, method: str, path: str, body: Mapping[str, object], *, timeout: float | None = None) -> Any:
        """What it answers, from JSON. Raises Refused for an answer that is an error, and NotDone."""
        seconds = self._timeout if timeout is None else timeout
        url = f"{self._address}{path}"
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
        try:
            with self._opener.open(request, timeout=seconds) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise Refused(f"{url} answers {error.code}: {_said(error)}") from None
        except (OSError, http.client.HTTPException, UnicodeError) as error:  # the last of a host that cannot be one
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise NotDone(f"{url} gives no answer within {seconds:g} s") from None
            raise NotDone(f"{url} cannot be reached ({reason}); check --server, and that the run is running") from None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise NotDone(f"{url} answers no JSON but {_brief(text.decode(errors='replace'))!r}") from None

    def detail(self, model: str) -> dict[str, Any]:
        """What is published under the name. `active_replicas` are the model servers that it is assigned to: they may
        still be loading it. Raises Refused where nothing is published under the name, and NotDone.
        """
        answer = self.ask("GET", "/listcell", {"model": model})
        kinds = {"model": str, "model_path": str, "checkpoint": str, "max_replicas": int, "active_replicas": int}
        if not isinstance(answer, dict) or not all(isinstance(answer.get(key), kind) for key, kind in kinds.items()):
            raise NotDone(f"/listcell answers {_brief(json.dumps(answer))}, without what it should say of {model}")
        if answer["model"] != model:
            raise NotDone(f"/listcell answers with model {_brief(answer['model'])} where {model} was asked for")
        return answer

    def generate(self, model: str, query: str, *, timeout: float | None = None) -> list[str]:
        """The texts that the model goes on with. Raises NotDone where there is none."""
        answer = self.ask("POST", "/generate", {"model": model, "query": query}, timeout=timeout)
        pairs = answer.get("generate_response") if isinstance(answer, dict) else answer
        pairs = pairs if isinstance(pairs, list) else []
        texts = [pair[0] for pair in pairs if isinstance(pair, list) and pair and isinstance(pair[0], str) and pair[0]]
        if not texts:
            raise NotDone(f"/generate answers {_brief(json.dumps(answer))}, and no text")
        return texts


def publish(server: Server, model: str, path: str, checkpoint: str, replicas: int, wait: float) -> None:
    """Publishes a model, and waits until it is assigned to as many servers and answers. Raises NotDone."""
    end = time.monotonic() + wait
    body = {"model": model, "model_path": path, "checkpoint": checkpoint, "replicas": replicas}
    answer = server.ask("POST", "/publish", body)
    if not isinstance(answer, dict) or (answer.get("model"), answer.get("replicas")) != (model, replicas):
        raise NotDone(f"/publish answers {_brief(json.dumps(answer))} where {model} was to be published")
    print(f"{model} is published; its servers load it", flush=True)
    assigned, problem, pause = 0, "", 0.1
    while True:
        try:
            assigned = server.detail(model)["active_replicas"]
            if assigned >= replicas:
                server.generate(model, QUERY, timeout=max(1.0, end - time.monotonic()))
                print(f"{model} answers; it is assigned to {assigned} of {replicas} servers")
                return
            problem = "no other model server has taken it"
        except NotDone as error:  # while it loads, or the HTTP server starts again
            problem = str(error)
        if time.monotonic() + pause > end:
            raise NotDone(
                f"{model} is published, and not ready after {wait:g} s: it is assigned to {assigned} of {replicas} "
                f"servers; {problem}; `tpuenv logs RUN` says how far its loading is"
            )
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def show(server: Server, model: str) -> None:
    """Prints what is published under the name. Raises NotDone."""
    found = server.detail(model)
    print(_brief(f"{found['model']}: {found['model_path']}, checkpoint {found['checkpoint']}", longest=1000))
    print(f"assigned to {found['active_replicas']} of {found['max_replicas']} servers")


def unpublish(server: Server, model: str, wait: float) -> None:
    """Unpublishes a model, and waits until it is gone. Raises NotDone."""
    end = time.monotonic() + wait
    answer = server.ask("POST", "/unpublish", {"model": model})
    if not isinstance(answer, dict) or answer.get("model") != model:
        raise NotDone(f"/unpublish answers {_brief(json.dumps(answer))} where {model} was to be unpublished")
    pause = 0.1
    while True:
        try:
            server.detail(model)
        except Refused as refused:
            if _NOT_PUBLISHED.search(str(refused)):
                print(f"{model} is not published any more")
                return
            raise
        if time.monotonic() + pause > end:
            raise NotDone(f"{model} is still published {wait:g} s after it was unpublished")
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def main(words: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    given = _arguments(words)
    server = Server(given.server, given.timeout)
    model = given.model if "/" in given.model else f"{CELL}/{given.model}"
    try:
        if given.command == "publish":
            publish(server, model, given.model_path, given.checkpoint, given.replicas, given.wait)
        elif given.command == "list":
            show(server, model)
        elif given.command == "generate":
            print("\n".join(map(_shown, server.generate(model, given.query))))
        else:
            unpublish(server, model, given.wait)
    except NotDone as error:
        print(f"{given.command}: {_brief(str(error), longest=1000)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{given.command}: interrupted; Saxml goes on with what it was asked for", file=sys.stderr)
        return 130
    return 0


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="saxml.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--server", required=True, type=_url, help="address of the HTTP server: http://HOST:8888")
    parser.add_argument("--timeout", type=_seconds, default=300.0, help="seconds for one answer (default: 300)")
    commands = parser.add_subparsers(dest="command", required=True)
    made = {
        name: commands.add_parser(name, help=help_)
        for name, help_ in (
            ("publish", "have the model servers load a model, and wait until it answers"),
            ("list", "what is published under a name"),
            ("generate", "ask a language model to go on with a text"),
            ("unpublish", "take a model from its servers"),
        )
    }
    for command in made.values():
        command.add_argument("model", help=f"such as spmd, which is {CELL}/spmd")
    made["publish"].add_argument("model_path", nargs="?", default=TEST_MODEL, help=f"(default: {TEST_MODEL})")
    made["publish"].add_argument("--checkpoint", default="None", help="gs://...; without one, weights are random")
    made["publish"].add_argument("--replicas", type=_count, default=1, help="on how many slices (default: 1)")
    made["generate"].add_argument("query")
    for name, seconds in (("publish", 1200.0), ("unpublish", 60.0)):
        made[name].add_argument("--wait", type=_seconds, default=seconds, help=f"seconds (default: {seconds:.0f})")
    return parser.parse_args(words)


def _url(text: str) -> str:
    if not re.fullmatch(r"https?://[^/\s]+/?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no address of a server; write http://HOST:8888")
    return text


def _count(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 9999")
    return int(text)


def _seconds(text: str) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?", text) or not float(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds; write one such as 600")
    return float(text)


def _said(error: urllib.error.HTTPError) -> str:
    """What is wrong, in Saxml's words: an HTTP server of v1.0.0 answers {"Error": ...}, later ones {"detail": ...}."""
    try:
        text = error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as broken:
        return f"and breaks off ({broken})"
    try:
        answer = json.loads(text)
        text = str(answer.get("Error") or answer.get("detail") or text)
    except (ValueError, AttributeError, RecursionError):
        pass
    return _brief(text)


def _shown(text: str) -> str:
    """The text, with what a terminal would obey, or cannot show, as escapes; a model answers with anything."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


def _brief(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """On one line."""
    line = _shown(" ".join(text.split()))
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
