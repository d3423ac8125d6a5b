"""Whether the account of this pod may use its team's bucket, and no other, by real requests to Cloud Storage.

In its own bucket it writes an object, reads it and deletes it. Of every other it asks for the names of objects, and
tries to write one: both must be refused. The objects are below PREFIX; none stays, also where the pod is deleted
meanwhile.

By itself, `bucket_access.py OWN OTHER...` prints what is wrong, and its exit code is 1 then, or "ok".

https://cloud.google.com/storage/docs/json_api/v1
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

PREFIX = "tpuenv-verify/"

# The variables of Google's own clients lead to other servers.
STORAGE = os.environ.get("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com"
METADATA = f"http://{os.environ.get('GCE_METADATA_HOST') or 'metadata.google.internal'}"

# https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity#metadata_server
_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"

# GKE's metadata server answers some seconds after a pod has started at the latest, as that page says.
_TRIES, _SECONDS_BETWEEN, _TIMEOUT_SECONDS = 6, 3.0, 30

# Of a deletion, which a pod that is deleted has 30 seconds for: less than that in all, where each try connects, reads
# and waits. https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
_DELETE_TRIES, _DELETE_TIMEOUT_SECONDS = 3, 3

_NO_ANSWER, _OK, _REFUSED, _NOT_FOUND = 0, 200, 403, 404
_NO = "refused"
_TRANSIENT = (408, 429, 500, 502, 503, 504)  # https://cloud.google.com/storage/docs/retry-strategy


class NoToken(Exception):
    """The metadata server gives none; the text says why."""


@dataclass(frozen=True)
class Answer:
    """The status of HTTP, and the body; without an answer 0, and why there is none."""

    status: int
    body: bytes = b""

    @property
    def words(self) -> str:
        """ "ok", "refused", "there is no such bucket or object", or the status with what the server says."""
        if self.status == _NO_ANSWER:
            return self.body.decode()
        known = {_OK: "ok", 204: "ok", _REFUSED: _NO, _NOT_FOUND: "there is no such bucket or object"}
        return known.get(self.status) or f"HTTP status {self.status}: {self.body[:200].decode(errors='replace')}"


def check(own: str, others: Sequence[str], *, run: str) -> tuple[dict[str, Any], list[str]]:
    """What was asked of each bucket and answered, as JSON; and what is wrong."""
    name = f"{PREFIX}{run}-{secrets.token_hex(8)}"
    try:
        token = _token()
    except NoToken as error:
        return {"own_bucket": {}, "other_buckets": {}}, [f"bucket {own}: {error}"]
    used = _use(own, name, token)
    tried = {bucket: _try(bucket, name, token) for bucket in others}
    problems = [f"bucket {own}: {what} an object: {words}" for what, words in used.items() if words != "ok"]
    problems += [
        f"bucket {other}: {words}, and must be refused" for other, words in tried.items() if words != "refused"
    ]
    return {"own_bucket": used, "other_buckets": tried}, problems


def _use(bucket: str, name: str, token: str) -> dict[str, str]:
    """What was answered to each of "write", "read" and "delete"; only to the first where that was refused."""
    content = name.encode()
    answers = {}
    written = Answer(_NO_ANSWER)
    with _ended_by_a_signal():
        try:
            written = _write(bucket, name, token)
            answers["write"] = written.words
            if written.status == _OK:
                read = _ask("GET", f"{_object(bucket, name)}?alt=media", token)
                wrong = read.status == _OK and read.body != content
                answers["read"] = "other bytes than were written" if wrong else read.words
        finally:
            if written.status in (_OK, _NO_ANSWER):  # then it may be there
                answers["delete"] = _delete(bucket, name, token).words
    return answers


def _try(bucket: str, name: str, token: str) -> str:
    """ "refused", or what was not."""
    listed = _ask("GET", f"{STORAGE}/storage/v1/b/{quote(bucket, safe='')}/o?maxResults=1", token)
    with _ended_by_a_signal():
        try:
            written = _write(bucket, name, token)
        except BaseException:
            _delete(bucket, name, token)
            raise
        deleted = _delete(bucket, name, token) if written.status in (_OK, _NO_ANSWER) else written
        if written.status == _OK:
            left = (
                "" if deleted.words == "ok" else f", and object {name} stays there, for deleting it is {deleted.words}"
            )
            return f"its objects can be written{left}"
    if listed.status == _OK:
        return "its objects can be listed"
    return next((answer.words for answer in (listed, written) if answer.status != _REFUSED), _NO)


def _write(bucket: str, name: str, token: str) -> Answer:
    query = urlencode({"uploadType": "media", "name": name})
    return _ask("POST", f"{STORAGE}/upload/storage/v1/b/{quote(bucket, safe='')}/o?{query}", token, name.encode())


def _delete(bucket: str, name: str, token: str) -> Answer:
    """One that is gone already was deleted by a try whose answer was lost. SIGTERM waits until it is done."""
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        url = _object(bucket, name)
        answer = _ask("DELETE", url, token, tries=_DELETE_TRIES, timeout=_DELETE_TIMEOUT_SECONDS)
    finally:
        signal.signal(signal.SIGTERM, before)
    if came:
        sys.exit(128 + came[0])
    return Answer(_OK) if answer.status == _NOT_FOUND else answer


def _object(bucket: str, name: str) -> str:
    return f"{STORAGE}/storage/v1/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"


@contextlib.contextmanager
def _ended_by_a_signal() -> Iterator[None]:
    """SIGTERM, which the pod gets when it is deleted, ends the program as an exception does: what cleans up is run."""

    def leave(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _token() -> str:
    """An access token of the pod's account. Raises NoToken."""
    answer = _ask("GET", METADATA + _TOKEN, headers={"Metadata-Flavor": "Google"}, transient=(*_TRANSIENT, _NOT_FOUND))
    try:
        return str(json.loads(answer.body)["access_token"])
    except (ValueError, LookupError, TypeError):
        raise NoToken(f"GKE's metadata server gives the pod no access token ({answer.words})") from None


def _ask(
    method: str,
    url: str,
    token: str = "",
    body: bytes | None = None,
    *,
    headers: dict[str, str] | None = None,
    transient: Sequence[int] = _TRANSIENT,
    tries: int = _TRIES,
    timeout: float = _TIMEOUT_SECONDS,
) -> Answer:
    """The answer, after transient faults that of another try. `timeout` is in seconds, to connect and to read each."""
    given = headers or {"Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(url, data=body, headers=given, method=method)
    for number in range(tries):
        if number:
            time.sleep(_SECONDS_BETWEEN)
        try:
            answer = _answer(request, timeout)
        except (OSError, http.client.HTTPException) as error:  # of which URLError and IncompleteRead are one
            answer = Answer(_NO_ANSWER, f"{url.partition('?')[0]} does not answer: {error!r}".encode())
        if answer.status not in (*transient, _NO_ANSWER):
            break
    return answer


def _answer(request: urllib.request.Request, timeout: float) -> Answer:
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            return Answer(reply.status, reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read())


if __name__ == "__main__":
    wrong = check(sys.argv[1], sys.argv[2:], run="by-hand")[1]
    print("\n".join(wrong) or "ok")
    sys.exit(bool(wrong))
