"""Copies a dataset into a bucket of Cloud Storage: objects of another bucket, or one file of a web server.

    copy_data.py source=gs://bucket/folder target=gs://my-bucket/data
    copy_data.py source=https://example.com/data.tar target=gs://my-bucket/data

Objects go from bucket to bucket inside Cloud Storage, not through this program. What the target already has is not
copied again, so a copy that was interrupted goes on when it is started again. Nothing is deleted.

Exit codes: 0 all is there, 1 something could not be copied, 2 wrong arguments.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import requests
from google.api_core.exceptions import GoogleAPIError
from google.auth.exceptions import GoogleAuthError
from google.cloud.storage import Blob, Bucket, Client
from google.cloud.storage.exceptions import InvalidResponse

KEYS = {"source": True, "target": True, "threads": False, "billing_project": False}  # whether each must be given
THREADS = 16
LINE_SECONDS = 10.0  # between two lines that say how far the copy is
CHUNK_BYTES = 16 << 20  # of an upload; Cloud Storage takes multiples of 256 KiB
TIMEOUT_SECONDS = 300.0  # for one answer; a rewrite of a large object answers after 30 s at most, and is continued

_ERRORS = (GoogleAPIError, GoogleAuthError, InvalidResponse, requests.RequestException, OSError)


class WrongArgument(Exception):
    """What is wrong with an argument, and what to write."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A folder of a bucket, without slashes around its name; "" is the whole bucket."""

    bucket: str
    folder: str

    def name(self, relative: str) -> str:
        """The name of an object in the folder."""
        return "/".join(part for part in (self.folder, relative) if part)


def main(words: Sequence[str]) -> int:
    """Copies what the words key=value say; the exit code."""
    try:
        values = arguments(words)
        target = place("target", values["target"])
        threads = int(values["threads"])
        client = Client()
        if values["source"].startswith(("https://", "http://")):
            return _download(client, values["source"], target)
        source = place("source", values["source"])
        return _copy_all(client, source, target, threads=threads, billing_project=values.get("billing_project"))
    except WrongArgument as wrong:
        print(wrong, file=sys.stderr)
        return 2
    except _ERRORS as error:
        print(f"the copy ended: {_brief(error)}", file=sys.stderr)
        return 1


def arguments(words: Sequence[str]) -> dict[str, str]:
    """The values by key. Raises WrongArgument."""
    values = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in KEYS:
            raise WrongArgument(f"'{word}' is not key=value of one of the keys {', '.join(KEYS)}")
        if value:
            values[key] = value
    for key, required in KEYS.items():
        if required and key not in values:
            raise WrongArgument(f"{key}: is missing; write {key}=gs://BUCKET/FOLDER")
    if not re.fullmatch("[1-9][0-9]{0,3}", values.setdefault("threads", str(THREADS))):
        raise WrongArgument(f"threads: '{values['threads']}' is not a number from 1 to 9999")
    return values


def place(key: str, text: str) -> Place:
    """The place of a gs:// URL. Raises WrongArgument."""
    bucket, _, folder = text.removeprefix("gs://").partition("/")
    if not text.startswith("gs://") or not bucket:
        raise WrongArgument(f"{key}: '{text}' is not a place that can be used; write gs://BUCKET/FOLDER")
    return Place(bucket=bucket, folder=folder.strip("/"))


def _copy_all(client: Client, source: Place, target: Place, *, threads: int, billing_project: str | None) -> int:
    """Copies what the target does not have; the exit code. `billing_project` pays for a bucket whose readers pay."""
    origin = client.bucket(source.bucket, user_project=billing_project)
    # The library names the project that pays by the bucket that is written to.
    destination = client.bucket(target.bucket, user_project=billing_project)
    blobs = list(_objects(client, origin, source))
    if not blobs:
        raise WrongArgument(f"source: there is nothing in gs://{source.bucket}/{source.folder}; check its name")
    present = {
        blob.name: blob for blob in client.list_blobs(destination, prefix=target.folder, timeout=TIMEOUT_SECONDS)
    }
    missing = []
    for blob, relative in blobs:
        there = present.get(target.name(relative))
        if there is None or (there.size, there.crc32c) != (blob.size, blob.crc32c):
            missing.append((blob, target.name(relative), there.generation if there else 0))
    print(f"{len(blobs)} objects, {_gib(blob for blob, _ in blobs)}; {len(blobs) - len(missing)} are there already")
    return _copy(origin, destination, missing, threads=threads)


def _objects(client: Client, origin: Bucket, source: Place) -> Iterator[tuple[Blob, str]]:
    """Each object of the folder, or the one object of that name, and its name relative to the folder."""
    for blob in client.list_blobs(origin, prefix=source.folder, timeout=TIMEOUT_SECONDS):
        if blob.name == source.folder:
            yield blob, blob.name.rpartition("/")[2]
        elif not source.folder or blob.name.startswith(f"{source.folder}/"):
            relative = blob.name[len(source.folder) :].lstrip("/")
            if relative and not relative.endswith("/"):  # an object of that name stands for an empty folder
                yield blob, relative


def _copy(origin: Bucket, destination: Bucket, missing: Sequence[tuple[Blob, str, int]], *, threads: int) -> int:
    """Copies the objects to these names, over the objects of these generations; the exit code."""
    failed = []
    done = 0
    line = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        running = {
            pool.submit(_rewrite, destination, blob, name, generation): name for blob, name, generation in missing
        }
        try:
            for future in as_completed(running):
                error = future.exception()
                if error is not None and not isinstance(error, _ERRORS):
                    raise error
                if error is not None:
                    failed.append(f"{running[future]}: {_brief(error)}")
                done += error is None
                if time.monotonic() - line > LINE_SECONDS:
                    line = time.monotonic()
                    print(f"{done} of {len(missing)} copied", flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    print(f"copied {done} objects from gs://{origin.name} to gs://{destination.name}")
    for message in failed:
        print(message, file=sys.stderr)
    if failed:
        print(f"{len(failed)} objects were not copied; start the copy again for them", file=sys.stderr)
    return 1 if failed else 0


def _rewrite(destination: Bucket, source: Blob, name: str, generation: int) -> None:
    """Copies one object inside Cloud Storage, in as many requests as its size and the two regions take.

    Only over the generation that was seen, 0 for none: then the request can be repeated, and another writer's object
    stays. https://cloud.google.com/storage/docs/json_api/v1/objects/rewrite
    """
    target = destination.blob(name)
    token = None
    while True:
        token, _, _ = target.rewrite(source, token=token, if_generation_match=generation, timeout=TIMEOUT_SECONDS)
        if token is None:
            return


def _download(client: Client, url: str, target: Place) -> int:
    """Copies one file of a web server, without keeping it here; the exit code.

    It counts as there if an object of its size is. The object appears when it is whole.
    """
    file = unquote(urlsplit(url).path).rpartition("/")[2]
    if not file:
        raise WrongArgument(f"source: '{url}' names no file; write https://HOST/PATH/FILE")
    name = target.name(file)
    bucket = client.bucket(target.bucket)
    with requests.get(url, stream=True, timeout=TIMEOUT_SECONDS, headers={"Accept-Encoding": "identity"}) as answer:
        answer.raise_for_status()
        size = int(answer.headers["Content-Length"]) if "Content-Length" in answer.headers else None
        there = bucket.get_blob(name, timeout=TIMEOUT_SECONDS)
        if there is not None and there.size == size:
            print(f"gs://{target.bucket}/{name} is there already")
            return 0
        writer = bucket.blob(name).open(
            "wb",
            chunk_size=CHUNK_BYTES,
            content_type=answer.headers.get("Content-Type"),
            if_generation_match=there.generation if there else 0,
            timeout=TIMEOUT_SECONDS,
        )
        with writer:  # an error ends the upload without an object
            for part in answer.iter_content(CHUNK_BYTES):
                writer.write(part)
    print(f"copied {url} to gs://{target.bucket}/{name}")
    return 0


def _gib(blobs: Iterator[Blob]) -> str:
    return f"{sum(blob.size for blob in blobs) / (1 << 30):.2f} GiB"


def _brief(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 500 else f"{text[:500]}..."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
