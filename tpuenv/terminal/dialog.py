"""What a command of several parts asks, and what it leaves to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Dialog:
    """`answer` answers a question. `careful` is where nobody sees a warning: then what is doubtful is left alone."""

    answer: Callable[[str], bool]
    careful: bool
    left: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def ask(self, question: str) -> bool:
        """The answer; whoever asks nothing has found nothing."""
        self.asked.append(question)
        return self.answer(question)

    def leave(self, line: str) -> None:
        """Says, now and in the end, what has to be done by hand."""
        self.left.append(line)
        self.say(f"  {line}")

    def say(self, line: str) -> None:
        print(line, flush=True)


def asked(question: str) -> bool:
    """What a person at the terminal says; nothing is no."""
    try:
        return input(f"    {question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
