"""The program of copy-data as its pod starts it, against the rehearsal's Cloud Storage and a web server."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from manifests.recipes import FOLDER
from rehearsal import http_server
from rehearsal.cloud import Cloud
from rehearsal.google.cloud_storage_api import BUCKET
from rehearsal.serve import answers
from tests.python_program import run_in_this_process

PROGRAM = FOLDER / "copy-data" / "copy_data.py"


class Storage:
    """Two buckets: `datasets` and `ours`."""

    def __init__(self, folder: Path) -> None:
        self.cloud = Cloud(folder / "cloud.db")
        self.server, self.address = http_server.start(answers(self.cloud))
        for bucket in ("datasets", "ours"):
            self.cloud.put(BUCKET, bucket, {"name": bucket, "project": "my-project"})

    def add(self, bucket: str, **contents: bytes) -> None:
        """Objects by name, with `__` for a slash."""
        for name, content in contents.items():
            self.cloud.put_blob(bucket, name.replace("__", "/"), content, {}, keep_old=False)

    def objects(self, bucket: str = "ours") -> dict[str, bytes]:
        return {blob.name: blob.content for blob in self.cloud.blobs(bucket, prefix="")}

    def generations(self) -> dict[str, int]:
        return {blob.name: blob.generation for blob in self.cloud.blobs("ours", prefix="")}

    def copy(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_in_this_process(PROGRAM, *words, **self.variables())

    def variables(self) -> dict[str, str]:
        return {"STORAGE_EMULATOR_HOST": self.address, "GOOGLE_CLOUD_PROJECT": "my-project"}


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    made = Storage(tmp_path)
    made.add("datasets", c4__a=b"first", c4__b__c=b"second", c40__d=b"of another dataset")
    yield made
    made.server.shutdown()
    made.server.server_close()
    made.cloud.close()


class Pages(http.server.BaseHTTPRequestHandler):
    """/data/file.bin is whole, and /data/short.bin ends before its length."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "6" if self.path.endswith("file.bin") else "7")
        self.end_headers()
        self.wfile.write(b"a file")

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def web() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/data"
    server.shutdown()
    server.server_close()


def test_a_folder_arrives_whole_and_nothing_beside_it(storage: Storage) -> None:
    command = [sys.executable, str(PROGRAM), "source=gs://datasets/c4/", "target=gs://ours/data/c4", "threads=2"]
    variables = {**os.environ, **storage.variables()}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert storage.objects() == {"data/c4/a": b"first", "data/c4/b/c": b"second"}
    assert done.stdout.splitlines()[-1] == "copied 2 objects from gs://datasets to gs://ours"


def test_what_is_there_already_is_not_copied_again(storage: Storage) -> None:
    storage.add("ours", data__a=b"first")
    before = storage.generations()["data/a"]
    done = storage.copy("source=gs://datasets/c4", "target=gs://ours/data")
    assert done.stdout.splitlines()[0] == "2 objects, 0.00 GiB; 1 are there already"
    assert storage.generations()["data/a"] == before
    assert storage.objects() == {"data/a": b"first", "data/b/c": b"second"}


def test_what_differs_is_copied_over_it_and_the_rest_of_the_target_stays(storage: Storage) -> None:
    storage.add("ours", data__a=b"older", data__mine=b"mine")
    assert storage.copy("source=gs://datasets/c4", "target=gs://ours/data").returncode == 0
    assert storage.objects() == {"data/a": b"first", "data/b/c": b"second", "data/mine": b"mine"}


def test_one_object_is_copied_into_the_folder(storage: Storage) -> None:
    assert storage.copy("source=gs://datasets/c4/b/c", "target=gs://ours/data").returncode == 0
    assert storage.objects() == {"data/c": b"second"}


def test_a_whole_bucket_is_copied_to_the_top_of_another(storage: Storage) -> None:
    assert storage.copy("source=gs://datasets", "target=gs://ours").returncode == 0
    assert storage.objects() == storage.objects("datasets")


def test_a_file_of_a_web_server_is_copied_once(storage: Storage, web: str) -> None:
    words = (f"source={web}/file.bin", "target=gs://ours/data")
    assert storage.copy(*words).returncode == 0
    assert storage.objects() == {"data/file.bin": b"a file"}
    before = storage.generations()
    assert storage.copy(*words).stdout == "gs://ours/data/file.bin is there already\n"
    assert storage.generations() == before


def test_a_download_that_breaks_off_leaves_no_object(storage: Storage, web: str) -> None:
    done = storage.copy(f"source={web}/short.bin", "target=gs://ours/data")
    assert done.returncode == 1
    assert done.stderr.startswith("the copy ended: ")
    assert "Traceback" not in done.stderr
    assert storage.objects() == {}


def test_a_bucket_that_does_not_exist_ends_the_copy(storage: Storage) -> None:
    done = storage.copy("source=gs://datasets/c4", "target=gs://other/data")
    assert done.returncode == 1
    assert "The specified bucket does not exist" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["source=gs://datasets/c5", "target=gs://ours"], "source: there is nothing in gs://datasets/c5; check"),
        (["source=datasets/c4", "target=gs://ours"], "source: 'datasets/c4' is not a place that can be used; write gs://"),
        (["source=gs:///c4", "target=gs://ours"], "source: 'gs:///c4' is not a place that can be used"),
        (["source=https://example.com/", "target=gs://ours"], "source: 'https://example.com/' names no file;"),
        (["source=gs://datasets/c4"], "target: is missing; write target=gs://BUCKET/FOLDER"),
        (["source=gs://datasets/c4", "target=gs://ours", "threads=0"], "threads: '0' is not a number from 1 to 9999"),
        (["--source", "gs://datasets/c4"], "'--source' is not key=value of one of the keys source, target,"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named_and_nothing_is_copied(storage: Storage, words: list[str], message: str) -> None:
    done = storage.copy(*words)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert storage.objects() == {}
