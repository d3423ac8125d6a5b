"""A row of the report: what the environment needs of the project, what the project has, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """The value is the word in the report."""

    OK = "ok"
    MISSING = "missing"
    UNKNOWN = "unknown"  # Google did not say; `have` says why
    NOT_ASKED = "not asked"  # without an answer to the first question there is nothing to learn


@dataclass(frozen=True, kw_only=True)
class Row:
    """`fix` is a command, a link or a setting; "" where the verdict is ok."""

    what: str
    need: str
    have: str
    verdict: Verdict
    fix: str = ""


def compared(what: str, need: str, have: str, *, ok: bool, fix: str) -> Row:
    """A row about something that Google did answer."""
    return Row(what=what, need=need, have=have, verdict=Verdict.OK if ok else Verdict.MISSING, fix="" if ok else fix)


def unknown(what: str, need: str, why: str, fix: str) -> Row:
    return Row(what=what, need=need, have=why, verdict=Verdict.UNKNOWN, fix=fix)


def beside_usage(
    what: str, have: str, *, amount: int, limit: int, usage: int, deployed: bool, need: str, fix: str
) -> Row:
    """A row about an amount under a limit that others use too. Where it fits only if a part of the usage is this
    environment's own, because it is deployed, that is unknown.
    """
    if deployed and limit - usage < amount <= limit:
        more = "tpuenv plan    # of what is needed, only what it adds must be free"
        return unknown(what, need, f"{have}, this environment's own included", more)
    return compared(what, need, have, ok=amount <= limit - usage, fix=fix)
