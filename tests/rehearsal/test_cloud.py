"""The fake cloud: what is written stays written, after crashes too."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rehearsal.cloud import Cloud
from tests.rehearsal.fake import ROOT


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    return Cloud(tmp_path / "cloud.db")


def test_objects_come_change_and_go(cloud: Cloud) -> None:
    cloud.put("kind", "b/1", {"size": 1})
    cloud.put("kind", "a/1", {"size": 2})
    cloud.put("kind", "b/1", {"size": 3})
    assert [(item.name, item.attributes) for item in cloud.find("kind")] == [("b/1", {"size": 3}), ("a/1", {"size": 2})]
    assert [item.name for item in cloud.find("kind", prefix="a/")] == ["a/1"]
    assert (len(cloud.find()), cloud.find("other")) == (2, [])
    assert cloud.delete("kind", "b/1")
    assert not cloud.delete("kind", "b/1")
    assert cloud.get("kind", "b/1") is None


def test_a_prefix_means_what_it_says(cloud: Cloud) -> None:
    for name in ("a_b", "a%b", "axb"):
        cloud.put("kind", name, {})
    assert [item.name for item in cloud.find(prefix="a_")] == ["a_b"]
    assert [item.name for item in cloud.find(prefix="a%")] == ["a%b"]


def test_a_transaction_that_fails_leaves_nothing(cloud: Cloud) -> None:
    with pytest.raises(RuntimeError), cloud.transaction():
        cloud.put("kind", "a", {})
        with cloud.transaction():
            cloud.put("kind", "b", {})
        raise RuntimeError
    assert cloud.find() == []


def test_drift_is_made_behind_terraforms_back(cloud: Cloud) -> None:
    cloud.put("kind", "a", {"size": 1})
    cloud.change("kind", "a", lambda values: values.update(size=2))
    assert cloud.get("kind", "a") == {"size": 2}
    with pytest.raises(KeyError):
        cloud.change("kind", "b", lambda values: None)


def test_two_moments_can_be_compared(cloud: Cloud) -> None:
    cloud.put("kind", "a", {"size": 1})
    before = cloud.snapshot()
    cloud.put("kind", "a", {"size": 2})
    cloud.put_blob("bucket", "o", b"x", {}, keep_old=False)
    after = cloud.snapshot()
    assert before.keys() < after.keys()
    assert before["kind", "a"] != after["kind", "a"]


def test_many_threads_count_without_losing_one(cloud: Cloud) -> None:
    def count() -> None:
        for _ in range(25):
            with cloud.transaction():
                total = cloud.get("kind", "sum") or {"value": 0}
                cloud.put("kind", "sum", {"value": total["value"] + 1})
            cloud.next("counter")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cloud.get("kind", "sum") == {"value": 100}
    assert cloud.next("counter") == 101


def test_a_killed_writer_leaves_whole_transactions(tmp_path: Path) -> None:
    """Each transaction writes a pair; a kill -9 at any moment leaves pairs."""
    program = f"""
import itertools, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from rehearsal.cloud import Cloud
cloud = Cloud(Path({str(tmp_path / "cloud.db")!r}))
for number in itertools.count():
    with cloud.transaction():
        cloud.put("left", str(number), {{}})
        cloud.put("right", str(number), {{}})
    print(number, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(20):
            writer.stdout.readline()
        writer.kill()
    cloud = Cloud(tmp_path / "cloud.db")
    assert len(cloud.find("left")) == len(cloud.find("right")) >= 20


def test_old_generations_of_an_object_are_kept_where_versions_are(cloud: Cloud) -> None:
    for keep_old, count in ((True, 2), (False, 1)):
        bucket = f"bucket-{keep_old}"
        first = cloud.put_blob(bucket, "state", b"1", {}, keep_old=keep_old)
        second = cloud.put_blob(bucket, "state", b"2", {}, keep_old=keep_old)
        assert second.generation > first.generation
        assert [blob.content for blob in cloud.blobs(bucket)] == [b"2"]
        assert len(cloud.blobs(bucket, generations=True)) == count
        cloud.delete_blob(bucket, "state", keep_old=keep_old)
        assert cloud.blobs(bucket) == []
        assert len(cloud.blobs(bucket, generations=True)) == (count if keep_old else 0)
