"""Manifests from files, folders and standard input: every document, or why it cannot be read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer

from manifests.recipes import KUSTOMIZE_FILES
from vocabulary.yaml_text import FastLoader

_MAX_BYTES = 4 << 20
_SUFFIXES = (".yaml", ".yml", ".json")  # what `kubectl apply -f FOLDER` takes, too
_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_NO_DOCUMENT = re.compile(r"(\s*([%#].*)?\n?)*")  # directives and comments


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document, or why there is none: `problem` is one line for the person who named the file."""

    file: str
    number: int = 0  # in the file, from 1
    value: Any = None
    problem: str = ""


class _UniqueKeys(Composer):
    """Refuses a key that is there twice: PyYAML keeps the last one without a word."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if name in seen:
                raise yaml.MarkedYAMLError(problem=f"'{name}' is there twice; keep one", problem_mark=key.start_mark)
            seen |= {name} - {""}
        return node


class _FastLoader(_UniqueKeys, FastLoader):
    pass


class _Loader(_UniqueKeys, yaml.SafeLoader):
    pass


class _BadFile(ValueError):
    """The file cannot be read; the text is one line."""


def documents(name: str) -> Iterator[Document]:
    """Every document of a file, of all files below a folder or, for "-", of standard input; of a List, its items.

    What is in a folder for Kustomize is no manifest. `name` is the path. What cannot be read is a document with a
    problem; nothing is raised.
    """
    if name != "-" and os.path.isdir(name):
        inside = (file for file in Path(name).rglob("*") if file.suffix in _SUFFIXES and file.is_file())
        files = sorted(file for file in inside if file.name not in KUSTOMIZE_FILES)
        if not files:
            yield Document(file=name, problem=f"holds no file that ends with {', '.join(_SUFFIXES)}")
        for file in files:
            yield from documents(str(file))
        return
    try:
        text = _read(name)
    except _BadFile as error:
        yield Document(file=name, problem=str(error))
        return
    yield from documents_in(text, file=name)


def documents_in(text: str, *, file: str) -> Iterator[Document]:
    """Every document of the text of a file, in the same way."""
    number = 0
    for line, chunk in _chunks(text):
        try:
            values = _values(chunk)
        # What PyYAML itself raises where a tag does not fit its value: !!bool x, !!int "", !!timestamp foo.
        except (yaml.YAMLError, RecursionError, ValueError, AttributeError, LookupError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f", line {line + mark.line + 1}" if mark else ""
            tag = isinstance(error, AttributeError | LookupError)
            what = "a value is not what its tag says" if tag else getattr(error, "problem", None) or str(error)[:100]
            yield Document(file=file, problem=f"is not YAML{where}: {what}")
        else:
            for item in (item for value in values for item in _items(value)):
                number += 1
                yield Document(file=file, number=number, value=item)


def _values(chunk: str) -> list[Any]:
    """Of every document that is not empty. Raises what PyYAML raises, with the messages of its parser in Python."""
    try:
        values = list(yaml.load_all(chunk, Loader=_FastLoader))
    except (yaml.YAMLError, ValueError, AttributeError, LookupError):
        values = list(yaml.load_all(chunk, Loader=_Loader))
    return [value for value in values if value is not None]


def _read(name: str) -> str:
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(_MAX_BYTES + 1) if sys.stdin else b""
        else:
            with Path(name).open("rb") as stream:
                raw = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise _BadFile("there is no such file") from None
    except (OSError, ValueError) as error:
        raise _BadFile(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(raw) > _MAX_BYTES:
        raise _BadFile("is larger than 4 MiB; that is no manifest")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _BadFile(f"is not UTF-8 (byte {error.start})") from None


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """The text of every document and the line it begins on, from 0, so that one that is not YAML hides no other."""
    starts = [match.start() for match in _START.finditer(text)]
    bounds = [0, *starts, len(text)]
    for start, end in pairwise(bounds):
        chunk = text[start:end]
        if not _NO_DOCUMENT.fullmatch(chunk):
            yield text.count("\n", 0, start), chunk


def _items(document: object) -> list[object]:
    """The items of a List, as `kubectl get -o yaml` writes it; any other document is its own only item."""
    if isinstance(document, dict) and document.get("kind") == "List" and isinstance(document.get("items"), list):
        return list(document["items"])
    return [document]
