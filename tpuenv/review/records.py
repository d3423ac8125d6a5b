"""Records of plans: what was reviewed, kept under a digest of what was synthesized, in a bucket or a local folder.

A merge commit has another id than the commit that was reviewed; what both synthesize is the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from environment import Environment, project
from tpuenv.failure import Failed
from tpuenv.review.changes import NO_CHANGES, Change, Changes, Value
from tpuenv.terraform.stacks import Stack, of_builds
from vocabulary.text_file import replace_text

if TYPE_CHECKING:
    from tpuenv.google.storage import BucketObjects

_VERSION = 1
_BUCKET = "gs://"


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one stack's plan would have done. `not_plannable` says what was missing, where it could not be planned.

    `begun`: an apply of it has begun, so it must not be applied a second time.
    """

    stack: str
    commit: str
    digest: str
    terraform: str
    changes: Changes = NO_CHANGES
    not_plannable: str = ""
    begun: bool = False

    @property
    def text(self) -> str:
        """Canonical JSON: the same record is the same bytes. Drift is not part of it."""
        body = {
            "version": _VERSION,
            "stack": self.stack,
            "commit": self.commit,
            "digest": self.digest,
            "terraform": self.terraform,
            "not_plannable": self.not_plannable,
            "begun": self.begun,
            "resources": [asdict(change) for change in self.changes.resources],
            "outputs": [asdict(value) for value in self.changes.outputs],
        }
        return json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def parse(text: str, *, place: str) -> Record:
    """The record in a file's text. Raises Failed, naming `place`, when it is not a record of this version."""
    try:
        body = json.loads(text)
        if body["version"] != _VERSION:
            raise Failed(f"{place}: a record of version {body['version']}, this tpuenv reads {_VERSION}; {_AGAIN}")
        changes = Changes(
            resources=tuple(
                Change(**{**change, "values": tuple(Value(**value) for value in change["values"])})
                for change in body["resources"]
            ),
            outputs=tuple(Value(**value) for value in body["outputs"]),
        )
        rest = {key: body[key] for key in ("stack", "commit", "digest", "terraform", "not_plannable")}
        rest["begun"] = body.get("begun", False) is not False  # records of older versions do not say
    except (ValueError, KeyError, TypeError) as error:
        raise Failed(f"{place}: not a record of a plan ({error}); {_AGAIN}") from error
    return Record(changes=changes, **rest)


_AGAIN = "delete it, and plan this commit again with --record"


class Store(Protocol):
    """Where records are kept."""

    def read(self, digest: str, stack: str) -> Record | None:
        """The record, or None. Raises Failed."""

    def add(self, record: Record) -> str:
        """Keeps the record of a plan; what became of it, in words. Raises Failed."""

    def write(self, record: Record) -> str:
        """Replaces the record of the same content and stack; the place of the new one. Raises Failed."""


@dataclass(frozen=True, kw_only=True)
class RecordFolder:
    """Records in a folder of this machine."""

    folder: Path

    def read(self, digest: str, stack: str) -> Record | None:
        path = self._path(digest, stack)
        try:
            return parse(path.read_text(encoding="utf-8"), place=str(path))
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise Failed(f"{path}: cannot be read: {error}") from error

    def add(self, record: Record) -> str:
        return f"recorded in {self.write(record)}"

    def write(self, record: Record) -> str:
        path = self._path(record.digest, record.stack)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(path, record.text)
        except OSError as error:
            raise Failed(f"{path}: cannot be written: {error.strerror or error}") from error
        return str(path)

    def _path(self, digest: str, stack: str) -> Path:
        return self.folder / digest / f"{stack}.json"


@dataclass(frozen=True, kw_only=True)
class RecordBucket:
    """Records in a Cloud Storage bucket, which shows an object only when it is whole."""

    objects: BucketObjects

    def read(self, digest: str, stack: str) -> Record | None:
        path = f"{digest}/{stack}.json"
        stored = self.objects.read(path, what="read the record of a plan")
        if stored is None:
            return None
        return parse(stored.content.decode("utf-8", errors="replace"), place=f"{_BUCKET}{self.objects.name}/{path}")

    def add(self, record: Record) -> str:
        """The first plan of a content is its record: who plans may not replace one. A deploy asks for an approval of
        what is not in it.
        """
        path = f"{record.digest}/{record.stack}.json"
        place = f"{_BUCKET}{self.objects.name}/{path}"
        if self.objects.create(path, record.text, what="write the record of a plan"):
            return f"recorded in {place}"
        return (
            f"not recorded: {place} is there, of an earlier plan of the same content, and stays. If a deploy finds "
            "another plan than that one, it shows it and asks for an approval"
        )

    def write(self, record: Record) -> str:
        path = f"{record.digest}/{record.stack}.json"
        self.objects.write(path, record.text, what="write the record of a plan")
        return f"{_BUCKET}{self.objects.name}/{path}"


def store(destination: str, environment: Environment) -> Store:
    """The store that `gs://BUCKET` or a folder's path names. Raises Failed."""
    if not destination.startswith(_BUCKET):
        return RecordFolder(folder=Path(destination))
    name = destination[len(_BUCKET) :].rstrip("/")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,220}", name):
        raise Failed(f"'{destination}' is not a bucket; write gs://BUCKET, or the path of a local folder")
    # Not before it is needed: Google's libraries take a second to load.
    from tpuenv.google.clients import connect
    from tpuenv.google.storage import BucketObjects

    missing = (
        f"{destination}: there is no such bucket; the pipeline stack creates it: `tpuenv deploy foundation pipeline`"
    )
    return RecordBucket(
        objects=BucketObjects(clients=connect(environment.settings.project_id), name=name, if_missing=missing)
    )


def digest(stacks: Iterable[Stack]) -> str:
    """The key of records: a digest of what was synthesized for the stacks that builds deploy, their JSON and the charts
    beside it. 64 hex digits.
    """
    content_digest = hashlib.sha256()
    for stack in sorted(of_builds(stacks), key=lambda stack: stack.name):
        paths = [stack.folder / "cdk.tf.json", *sorted((stack.folder / "assets").rglob("*"))]
        for path in (path for path in paths if path.is_file()):
            content = path.read_bytes()
            name = f"{stack.name}/{path.relative_to(stack.folder).as_posix()}"
            content_digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return content_digest.hexdigest()


def commit() -> str:
    """The commit of this checkout: COMMIT_SHA as Cloud Build sets it, or git's; "unknown" without both.

    With changes that are not committed "(changed)" follows: no other checkout has the same files.
    """
    if named := os.environ.get("COMMIT_SHA"):
        return named
    head = _git("rev-parse", "HEAD")
    if not head:
        return "unknown"
    return f"{head} (changed)" if _git("status", "--porcelain") else head


def _git(*arguments: str) -> str:
    try:
        process = subprocess.run(["git", *arguments], cwd=project.ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""
