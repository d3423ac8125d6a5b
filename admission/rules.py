"""A rule: what an API server, a webhook or a controller does not take, and where that is written.

The rules are data so that a table can be made of them and each can be taken out, to see the test of it fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from admission.manifest import KINDS, Workload
from admission.result import Reason, Verdict

Finding = tuple[str, str, str]  # where, what is wrong, what to do
Check = Callable[[Workload], Iterable[Finding]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """`code` is stable. `later`: what is accepted, and by whom nothing is made of it then."""

    code: str
    source: str
    kinds: tuple[str, ...]
    check: Check
    later: str = ""

    def verdict(self, kind: str) -> Verdict:
        return Verdict.NEVER if self.ending(kind) else Verdict.REFUSED

    def ending(self, kind: str) -> str:
        """Of a plain Job the API server looks at everything; of the others their controllers meet it afterwards."""
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


PODS = "no pod of these is ever made"


@dataclass(kw_only=True)
class RuleBook:
    """The rules of one source, in the order in which they are written."""

    source: str  # project, version and file
    later: str = ""
    rules: list[Rule] = field(default_factory=list)

    def rule(
        self, code: str, function: str, kinds: Iterable[str] = KINDS, later: str | None = None
    ) -> Callable[[Check], Check]:
        """Enters the function below as a rule; `function` is the one in the source that says so."""

        def enter(check: Check) -> Check:
            self.rules.append(
                Rule(
                    code=code,
                    source=f"{self.source}, {function}",
                    kinds=tuple(kinds),
                    check=check,
                    later=self.later if later is None else later,
                )
            )
            return check

        return enter
