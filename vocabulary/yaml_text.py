"""YAML -> a tree of values that know their lines. Nothing is constructed: `yes` stays that text, tags do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import yaml

from vocabulary.printable import quoted

MERGE = "<<"  # the key that takes another mapping's keys over, in YAML 1.1
_NULL = "tag:yaml.org,2002:null"


class NotYaml(ValueError):
    """Text that is not one YAML document. The text says why; `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class FastLoader(yaml.SafeLoader):
    """As yaml.SafeLoader, ten times as fast: the C parser makes the events.

    The nodes are made of them in Python: nesting that is too deep crashes C, and raises RecursionError here. The
    messages of C are less exact: what it refuses is for yaml.SafeLoader to refuse. Raises yaml.YAMLError as well for
    a text with characters that C accepts in more places than Python does.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        if "\t" in text or "\ufeff" in text:
            raise yaml.YAMLError("has a tab or a byte order mark")
        self._events = yaml.CSafeLoader(text)

    def check_event(self, *choices: Any) -> bool:
        return bool(self._events.check_event(*choices))

    def peek_event(self) -> yaml.Event | None:
        return self._events.peek_event()

    def get_event(self) -> Any:
        return self._events.get_event()


@dataclass(frozen=True, kw_only=True)
class Value:
    """A value of the file, and where it is: its path (`tpu_pools.dev.zone`) and the line of its key."""

    path: str
    line: int
    node: yaml.Node

    @property
    def empty(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag == _NULL

    @property
    def text(self) -> str | None:
        """As it is written, or None for a list or a mapping."""
        return self.node.value if isinstance(self.node, yaml.ScalarNode) else None

    @property
    def items(self) -> list[Value] | None:
        """The values of a list, or None if it is none. They have the list's path and lines of their own."""
        if not isinstance(self.node, yaml.SequenceNode):
            return None
        return [Value(path=self.path, line=_line(item), node=item) for item in self.node.value]

    @property
    def pairs(self) -> list[tuple[str, Value]] | None:
        """The keys and values of a mapping, or None if it is none. A key that is no text becomes an empty one."""
        if not isinstance(self.node, yaml.MappingNode):
            return None
        return list(self._pairs(self.node))

    @property
    def merges(self) -> bool:
        return any(key == MERGE for key, _ in self.pairs or [])

    def _pairs(self, node: yaml.MappingNode) -> Iterator[tuple[str, Value]]:
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            path = f"{self.path}.{shown(name)}" if self.path else shown(name)
            yield name, Value(path=path, line=_line(key), node=value)


def parse(text: str) -> Value:
    """The document's value. Raises NotYaml; an empty document is an empty value."""
    with _explained(text):
        roots = _roots(text, most=2)
    if len(roots) > 1:
        raise NotYaml(_line(roots[1]), "begins a second document; a file holds one")
    root = roots[0] if roots else yaml.ScalarNode(_NULL, "")
    return Value(path="", line=_line(root), node=root)


def check(text: str) -> None:
    """Raises NotYaml if the text is not any number of YAML documents."""
    with _explained(text):
        _roots(text)


def _roots(text: str, most: int | None = None) -> list[yaml.Node]:
    """The root of every document, or of that many. Raises what PyYAML raises."""
    try:
        return list(islice(_documents(FastLoader(text)), most))
    except (yaml.YAMLError, ValueError):
        return list(islice(_documents(yaml.SafeLoader(text)), most))


def _documents(loader: yaml.SafeLoader) -> Iterator[yaml.Node]:
    while loader.check_node():
        node = loader.get_node()
        assert node is not None
        yield node


@contextmanager
def _explained(text: str) -> Iterator[None]:
    """Raises NotYaml for what PyYAML raises of the text."""
    try:
        yield
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise NotYaml(line, f"has a character that YAML does not allow ({error.character:#06x}); remove it") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if mark and "\\t" in (error.problem or ""):
            raise NotYaml(mark.line + 1, "has a tab, which YAML does not allow there; write spaces instead") from None
        because = ", ".join(filter(None, (error.context, error.problem)))
        raise NotYaml(mark.line + 1 if mark else 1, f"is not YAML: {shown(because, longest=160)}") from None
    except RecursionError:
        raise NotYaml(1, "is nested too deeply") from None
    except (ValueError, OverflowError):
        raise NotYaml(1, "is not YAML: it has an escaped character that does not exist") from None


def shown(text: str, *, longest: int = 80) -> str:
    """Text of the file on one line of a terminal, shortened."""
    return quoted(text, longest=longest)[1:-1]


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1 if node.start_mark else 1
