"""All checks: asks Google at once, and compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from environment import Environment
from tpuenv.failure import Failed
from tpuenv.google.clients import Clients
from tpuenv.preflight import (
    names,
    offers,
    permissions,
    policies,
    project,
    quotas,
    reservations,
    tpu_quotas,
)
from tpuenv.preflight.asking import ask, ask_all
from tpuenv.preflight.question import Answers, Check
from tpuenv.preflight.row import Row, Verdict, unknown

CHECKS: tuple[Check, ...] = (
    project.CHECK,
    permissions.CHECK,
    tpu_quotas.CHECK,
    quotas.CHECK,
    offers.CHECK,
    reservations.CHECK,
    policies.CHECK,
    names.CHECK,
)


@dataclass(frozen=True, kw_only=True)
class Section:
    """The rows of one check."""

    name: str
    rows: tuple[Row, ...]


def report(environment: Environment, clients: Clients, *, progress: Callable[[int, int], None]) -> list[Section]:
    """A section a check, without those that have nothing to compare. Raises nothing but an interrupt.

    The login and the project are asked for first: without both there would be the same refusal in every row.
    """
    first = project.project(environment)
    answers: Answers = {first: ask(clients, first)}
    rows = _guarded(project.login_and_project, environment, answers)
    if any(row.verdict is not Verdict.OK for row in rows) and not answers[first].switched_off:
        rest = Row(what="everything else", need="", have="", verdict=Verdict.NOT_ASKED, fix="run this again then")
        return [Section(name=project.CHECK.name, rows=(*rows, rest))]
    questions = [question for check in CHECKS for question in check.questions(environment) if question != first]
    answers = {**answers, **ask_all(clients, questions, progress=progress)}
    sections = (Section(name=check.name, rows=_guarded(check.rows, environment, answers)) for check in CHECKS)
    return [section for section in sections if section.rows]


def _guarded(
    rows: Callable[[Environment, Answers], Iterator[Row]], environment: Environment, answers: Answers
) -> tuple[Row, ...]:
    """The rows up to an answer that has another form than Google documents, and one that says so."""
    done = []
    try:
        for row in rows(environment, answers):
            done.append(row)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        why = f"an answer of Google's has another form than documented ({type(error).__name__})"
        done.append(unknown("the rest of these checks", "", why, "tpuenv preflight    # again"))
    return tuple(done)


def require_for_bootstrap(environment: Environment, clients: Clients) -> None:
    """Raises Failed, with all that is missing, where `tpuenv bootstrap` would stop half-way.

    What Google does not answer at once, for its APIs are off, is no obstacle.
    """
    clients = replace(clients, patience=replace(clients.patience, again=clients.patience.poll), say=lambda _: None)
    needed = permissions.of_bootstrap()
    billing = project.billing_question(environment)
    questions = [billing, *(permissions.question(environment, *group) for group in needed.items())]
    answers = ask_all(clients, questions, progress=lambda _done, _all: None)
    rows = (
        *_guarded(project.billing, environment, answers),
        *_guarded(lambda of, given: permissions.rows_of(needed, of, given), environment, answers),
    )
    if missing := [row for row in rows if row.verdict is Verdict.MISSING]:
        raise Failed("\n".join(f"{row.what}: {row.have}; needed is {row.need}:\n  {row.fix}" for row in missing))


def exit_code(sections: Sequence[Section]) -> int:
    """1 where something is missing or nothing could be asked."""
    stops = (Verdict.MISSING, Verdict.NOT_ASKED)
    return int(any(row.verdict in stops for section in sections for row in section.rows))


def counts(sections: Sequence[Section]) -> dict[str, int]:
    """How many rows there are of each verdict."""
    verdicts = [row.verdict for section in sections for row in section.rows]
    return {verdict.value: verdicts.count(verdict) for verdict in Verdict}


def as_json(environment: Environment, sections: Sequence[Section]) -> dict[str, Any]:
    return {
        "project": environment.settings.project_id,
        "region": environment.settings.region,
        "counts": counts(sections),
        "checks": [
            {"section": section.name, **vars(row), "verdict": row.verdict.value}
            for section in sections
            for row in section.rows
        ],
    }
