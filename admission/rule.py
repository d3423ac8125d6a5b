"""A rule: what an API server, a webhook or a controller does not take, and where that is written.

The rules are data, so that docs/admission-rules.md can list them and a test can take out one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as field_
from typing import Any

from admission.result import Reason, Verdict
from admission.workload import KINDS, Field, Workload
from vocabulary.printable import brief

Finding = tuple[str, str, str]  # where, what is wrong, what to do
Check = Callable[[Workload], Iterable[Finding]]
PartCheck = Callable[[Any], Iterable[Finding]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """`code` is stable. `later`: why the workload, though accepted, never starts; empty if it is refused."""

    code: str
    source: str
    kinds: tuple[str, ...]
    check: Check
    later: str = ""

    def verdict(self, kind: str) -> Verdict:
        return Verdict.NEVER if self.ending(kind) else Verdict.REFUSED

    def ending(self, kind: str) -> str:
        """The end of the message for what is checked after creation, else empty.

        The API server checks a plain Job whole; of the other kinds, controllers check that later.
        """
        if not self.later or (self.later == PODS and kind == "Job"):
            return ""
        return f"; the {kind} is accepted, but {self.later}"

    def reasons(self, workload: Workload) -> Iterator[Reason]:
        if workload.kind not in self.kinds or (self.source.startswith("Kueue") and not workload.is_queued):
            return
        for where, what, fix in self.check(workload):
            yield Reason(
                verdict=self.verdict(workload.kind),
                code=self.code,
                where=where,
                what=what + self.ending(workload.kind),
                fix=fix,
            )


PODS = "none of its pods is ever created"


@dataclass(kw_only=True)
class RuleBook:
    """The rules of one source, in the order in which they are written."""

    source: str  # project, version and file
    later: str = ""
    rules: list[Rule] = field_(default_factory=list)

    def rule(
        self,
        code: str,
        function: str,
        kinds: Iterable[str] = KINDS,
        later: str | None = None,
        *,
        parts: Callable[[Workload], Iterable[Any]] | None = None,
    ) -> Callable[[PartCheck], PartCheck]:
        """Adds the function below as a rule; `function` is the one in the source that says so.

        `parts` gives the parts of a workload that the function below is called with, one by one; without it, it is
        called with the workload itself.
        """

        def add(check: PartCheck) -> PartCheck:
            def check_parts(workload: Workload) -> Iterator[Finding]:
                for part in parts(workload) if parts else (workload,):
                    yield from check(part)

            self.rules.append(
                Rule(
                    code=code,
                    source=f"{self.source}, {function}",
                    kinds=tuple(kinds),
                    check=check_parts,
                    later=self.later if later is None else later,
                )
            )
            return check

        return add


def one_of(field: Field, noun: str, values: Sequence[str]) -> Iterator[Finding]:
    """A text that is none of these values. An empty one counts as absent."""
    if field.text() and field.text() not in values:
        yield (
            field.path,
            f"{brief(field.text())} is no {noun}",
            f"use {(', ' if len(values) > 2 else ' or ').join(values)}",
        )


def not_negative(field: Field) -> Iterator[Finding]:
    """A number below 0."""
    if field.number(0) < 0:
        yield field.path, f"{field.value} is less than nothing", "set 0 or more"
