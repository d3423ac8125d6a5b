"""The fake cloud: every object that exists, in one SQLite file.

An object has a kind (a Terraform resource type, or "kubernetes"), a full name ("projects/p/global/networks/n") and
attributes (JSON). SQLite's transactions make it safe for parallel providers and for a kill -9 at any moment.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Attributes = dict[str, Any]

_TABLES = """
CREATE TABLE IF NOT EXISTS objects (
    kind TEXT NOT NULL, name TEXT NOT NULL, attributes TEXT NOT NULL, created REAL NOT NULL,
    PRIMARY KEY (kind, name));
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS blobs (
    bucket TEXT NOT NULL, name TEXT NOT NULL, generation INTEGER NOT NULL, content BLOB NOT NULL, metadata TEXT NOT
    NULL, created REAL NOT NULL, live INTEGER NOT NULL, PRIMARY KEY (bucket, name, generation));
"""


@dataclass(frozen=True, kw_only=True)
class Object:
    """Something that exists."""

    kind: str
    name: str
    attributes: Attributes


@dataclass(frozen=True, kw_only=True)
class Blob:
    """One generation of an object in a bucket; `created` is seconds since 1970."""

    bucket: str
    name: str
    generation: int
    content: bytes
    metadata: Attributes
    created: float


class Cloud:
    """A view of the file at `path`, which is made when it is not there.

    Threads may share one, each waiting for the other's transactions; processes open one each.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        # A crash of this process loses nothing; only one of the machine could, and the rehearsal would be over then.
        self._connection.execute("PRAGMA synchronous=OFF")
        with self.transaction():
            for statement in _TABLES.split(";"):
                self._connection.execute(statement)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that happens inside happens at once or, after an exception, not at all. Nesting joins the outer one."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def get(self, kind: str, name: str) -> Attributes | None:
        """The attributes of one object, or None."""
        rows = self._rows("SELECT attributes FROM objects WHERE kind = ? AND name = ?", (kind, name))
        return json.loads(rows[0][0]) if rows else None

    def put(self, kind: str, name: str, attributes: Mapping[str, Any]) -> None:
        """Create the object or replace its attributes."""
        with self.transaction():
            self._connection.execute(
                "INSERT INTO objects VALUES (?, ?, ?, ?)"
                " ON CONFLICT (kind, name) DO UPDATE SET attributes = excluded.attributes",
                (kind, name, json.dumps(attributes), time.time()),
            )

    def delete(self, kind: str, name: str) -> bool:
        """Remove the object; False when there was none."""
        with self.transaction():
            return (
                self._connection.execute("DELETE FROM objects WHERE kind = ? AND name = ?", (kind, name)).rowcount > 0
            )

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Every object of every bucket and its older versions, by name; and every other object, as JSON."""
        for bucket, name, content in self._rows("SELECT bucket, name, content FROM blobs", ()):
            yield f"gs://{bucket}/{name}", bytes(content)
        for kind, name, attributes in self._rows("SELECT kind, name, attributes FROM objects", ()):
            yield f"{kind} {name}", attributes.encode()

    def find(self, kind: str | None = None, *, prefix: str | tuple[str, ...] = "") -> list[Object]:
        """What exists, in order of creation: all, or of one kind, or with names under a prefix, or one of several."""
        prefixes = (prefix,) if isinstance(prefix, str) else prefix
        # As ranges, which the index of the primary key answers.
        under = " OR ".join("(name >= ? AND name < ?)" for _ in prefixes)
        rows = self._rows(
            f"SELECT kind, name, attributes FROM objects WHERE {'kind = ? AND' if kind else ''} ({under or 'false'})"
            " ORDER BY created, rowid",
            (*([kind] if kind else []), *(bound for start in prefixes for bound in (start, f"{start}\U0010ffff"))),
        )
        return [Object(kind=row[0], name=row[1], attributes=json.loads(row[2])) for row in rows]

    def change(self, kind: str, name: str, edit: Callable[[Attributes], None]) -> None:
        """Edit an object behind Terraform's back, as somebody in the console would. Raises KeyError without one."""
        with self.transaction():
            attributes = self.get(kind, name)
            if attributes is None:
                raise KeyError(f"{kind} {name}")
            edit(attributes)
            self.put(kind, name, attributes)

    def next(self, counter: str) -> int:
        """1, 2, 3, ...: numbers that the cloud hands out, or counts of calls."""
        with self.transaction():
            row = self._connection.execute(
                "INSERT INTO counters VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value",
                (counter,),
            ).fetchone()
            return int(row[0])

    def snapshot(self) -> dict[tuple[str, str], str]:
        """Everything that exists, to compare two moments; blobs with their generation and without their content."""
        objects = {(item.kind, item.name): json.dumps(item.attributes, sort_keys=True) for item in self.find()}
        blobs = {(f"blob {blob.bucket}", blob.name): str(blob.generation) for blob in self.blobs()}
        return objects | blobs

    def put_blob(self, bucket: str, name: str, content: bytes, metadata: Attributes, *, keep_old: bool) -> Blob:
        """Write an object into a bucket; the one it replaces stays as an old generation when `keep_old`."""
        with self.transaction():
            generation = 1_700_000_000_000_000 + self.next("generation")
            self._retire(bucket, name, keep_old=keep_old)
            self._connection.execute(
                "INSERT INTO blobs VALUES (?, ?, ?, ?, ?, ?, 1)",
                (bucket, name, generation, content, json.dumps(metadata), time.time()),
            )
            return self.blobs(bucket, name=name)[0]

    def delete_blob(self, bucket: str, name: str, *, keep_old: bool, generation: int | None = None) -> None:
        """Delete the live object, or for good one generation of it."""
        with self.transaction():
            if generation is None:
                self._retire(bucket, name, keep_old=keep_old)
            else:
                self._connection.execute(
                    "DELETE FROM blobs WHERE bucket = ? AND name = ? AND generation = ?", (bucket, name, generation)
                )

    def _retire(self, bucket: str, name: str, *, keep_old: bool) -> None:
        action = "UPDATE blobs SET live = 0" if keep_old else "DELETE FROM blobs"
        self._connection.execute(f"{action} WHERE bucket = ? AND name = ? AND live = 1", (bucket, name))

    def blobs(
        self, bucket: str | None = None, *, prefix: str = "", name: str | None = None, generations: bool = False
    ) -> list[Blob]:
        """Objects in buckets, by name; with `generations` the old ones too, oldest first."""
        rows = self._rows(
            "SELECT bucket, name, generation, content, metadata, created FROM blobs"
            " WHERE bucket = coalesce(?, bucket) AND name = coalesce(?, name)"
            " AND substr(name, 1, length(?)) = ? AND live >= ?"
            " ORDER BY bucket, name, generation",
            (bucket, name, prefix, prefix, 0 if generations else 1),
        )
        names = ("bucket", "name", "generation", "content", "metadata", "created")
        return [Blob(**dict(zip(names, row, strict=True)) | {"metadata": json.loads(row[4])}) for row in rows]
