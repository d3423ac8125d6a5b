"""The one way to ask a person, and what a command of several parts leaves for the person to do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from tpuenv.failure import Failed


def has_person() -> bool:
    """Whether standard input is a terminal, so that a person can answer."""
    return bool(sys.stdin and sys.stdin.isatty())


def require_person(command: str, otherwise: str) -> None:
    """Raises Failed, with what to do otherwise, where nobody can be asked."""
    if not has_person():
        raise Failed(f"{command}: there is no terminal to ask at; {otherwise}")


def confirmed(question: str) -> bool:
    """The answer of the person at the terminal: y or yes is yes, anything else no."""
    try:
        return input(f"    {question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


@dataclass(frozen=True, kw_only=True)
class Dialog:
    """`answer` answers a question. `unattended`: nobody reads a warning, so what is doubtful is left alone.

    `questions` are those so far: without one, nothing was wrong. `to_do` is what has to be done by hand.
    """

    answer: Callable[[str], bool]
    unattended: bool
    to_do: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)

    def ask(self, question: str) -> bool:
        """The answer to a question, which is kept in `questions`."""
        self.questions.append(question)
        return self.answer(question)

    def leave(self, line: str) -> None:
        """Prints, now and at the end, what has to be done by hand."""
        self.to_do.append(line)
        self.say(f"  {line}")

    def say(self, line: str) -> None:
        print(line, flush=True)
