"""A request to one of Google's REST APIs that only reads, and the answer to it or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from environment import Environment
from tpuenv.preflight.row import Row, unknown


@dataclass(frozen=True, kw_only=True)
class Question:
    """A GET of `path` of the service `host`; with `tested`, the POST that returns those of these permissions that the
    caller has.

    `permission` is what Google checks; `role` has it, or what is `tested`.
    """

    host: str
    path: str
    permission: str
    role: str
    tested: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`body` is the JSON of a success, with the command that grants what is tested in `fix`.

    Without success `code` is the HTTP status, 0 where nothing came back, `why` says what is wrong and `fix` what to do;
    `switched_off`: the API is.
    """

    body: Mapping[str, Any] = field(default_factory=dict)
    code: int = 200
    switched_off: bool = False
    why: str = ""
    fix: str = ""

    @property
    def exists(self) -> bool:
        """Whether there is what was asked for, as far as Google says."""
        return self.code != 404

    def unknown(self, what: str, need: str) -> Row:
        """The row about what this answer does not say."""
        return unknown(what, need, self.why, self.fix)


Answers = Mapping[Question, Answer]


class Check(NamedTuple):
    """Rows about one part of the project. `rows` may raise LookupError, TypeError, ValueError or AttributeError where
    an answer has another form than Google documents.
    """

    name: str
    questions: Callable[[Environment], Iterable[Question]]
    rows: Callable[[Environment, Answers], Iterator[Row]]
