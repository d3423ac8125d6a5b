"""make outdated, against a registry, a GitHub, a Python index and an npm of this machine."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator

import pytest

from tests import outdated
from vocabulary.sources import Source

PINNED = f"sha256:{'1' * 64}"
ANSWERS: dict[str, object] = {
    "/v2/kueue/kueue/tags/list?n=1000": {"tags": ["v0.19.2", "v0.9.9", "sha256-1.sig", "v0.20.0-rc.1"]},
    "/v2/kueue/kueue/tags/list?n=1000&last=x": {"tags": ["v0.19.10", "latest"]},
    "/token?service=here&scope=all": {"token": "anybody"},
    "/repos/hashicorp/terraform/releases/latest": {"tag_name": "v1.15.0"},
    "/simple/ray/": '<a href="/f/ray-3.0.0-py3-none-any.whl">ray-3.0.0-py3-none-any.whl</a>',
    "/cdktf-cli": {
        "name": "cdktf-cli",
        "dist-tags": {"latest": "0.22.0"},
        "versions": {"0.22.0": {"version": "0.22.0"}},
    },
    "/v2/strange/tags/list?n=1000": ["no tags"],
}


class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answer = ANSWERS.get(self.path)
        if self.path.startswith("/v2/") and self.headers["Authorization"] != "Bearer anybody":
            realm = f"http://{self.headers['Host']}/token"
            self.send_response(401)
            self.send_header("WWW-Authenticate", f'Bearer realm="{realm}",service="here",scope="all"')
        elif self.path == "/v2/library/python/manifests/3.12-slim":
            self.send_response(200)
            self.send_header("Docker-Content-Digest", PINNED)
        else:
            self.send_response(200 if answer else 404)
            if self.path == "/v2/kueue/kueue/tags/list?n=1000":
                self.send_header("Link", '</v2/kueue/kueue/tags/list?n=1000&last=x>; rel="next"')
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self.send_header("Content-Type", "text/html" if isinstance(answer, str) else "application/json")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(text.encode())

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def host() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def image(host: str, path: str, version: str, digest: str = PINNED) -> Source:
    return Source(registry=host, path=path, version=version, digest=digest)


def test_the_newest_of_all_pages_of_tags_counts_and_no_candidate(host: str) -> None:
    assert outdated.of_image(image(host, "kueue/kueue", "v0.19.2")) == "v0.19.10"


def test_a_tag_that_moves_is_newer_when_its_digest_is_another(host: str) -> None:
    assert outdated.of_image(image(host, "library/python", "3.12-slim")) == "3.12-slim"
    assert outdated.of_image(image(host, "library/python", "3.12-slim", "sha256:0")) == f"3.12-slim@{PINNED}"


def test_python_and_node_are_asked_where_pip_and_npm_ask(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_FIND_LINKS": "",
        "PIP_INDEX_URL": f"http://{host}/simple",
        "npm_config_registry": f"http://{host}",
        "no_proxy": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    assert outdated.of_python("ray") == "3.0.0"
    assert outdated.of_node("cdktf-cli") == "0.22.0"
    with pytest.raises(outdated.Unreachable, match="pip: ERROR: No matching distribution found for no-such-package"):
        outdated.of_python("no-such-package")


def test_the_table_has_what_is_newer_and_a_line_for_what_was_not_asked(
    host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(outdated, "GITHUB", f"http://{host}")
    kueue, strange = image(host, "kueue/kueue", "v0.19.2"), image(host, "strange", "v1.0.0")
    closed = image("127.0.0.1:9", "a/b", "v1.0.0")
    missing = image(host, "missing", "v1.0.0")
    sources = [
        ("image kueue", "v0.19.2", lambda: outdated.of_image(kueue)),
        ("terraform", "1.15.0", lambda: outdated.of_release("hashicorp/terraform")),
        ("image closed", "v1.0.0", lambda: outdated.of_image(closed)),
        ("image missing", "v1.0.0", lambda: outdated.of_image(missing)),
        ("image strange", "v1.0.0", lambda: outdated.of_image(strange)),
    ]
    monkeypatch.setattr(outdated, "pinned", lambda: sources)
    assert outdated.main() == 0
    shown = capsys.readouterr()
    assert shown.out == "image kueue  v0.19.2  v0.19.10\n1 of 2 have a newer version; 3 could not be asked\n"
    assert shown.err.splitlines() == [
        "Asking for the newest versions of 5 ...",
        "image closed: not asked: 127.0.0.1:9: ConnectionError",
        f"image missing: not asked: {host}: 404 Not Found",
        "image strange: not asked: the answer is none of this kind of server",
    ]


def test_all_that_is_named_is_asked_for() -> None:
    named = {what: version for what, version, _ in outdated.pinned()}
    assert {
        "chart kueue",
        "image python",
        "image sax-http",
        "terraform",
        "python ray",
        "node cdktf-cli",
    } <= named.keys()
    assert named["python cdktf"] == named["node cdktf-cli"]
