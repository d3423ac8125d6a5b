"""A mistake in the settings, as one line: the key, the value, what is wrong and what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One mistake. `keys` are the settings it depends on; the message begins with the first of them."""

    keys: tuple[str, ...]
    message: str


class Refused(ValueError):
    """The settings cannot be used. `problems` holds every mistake, as `KEY: what is wrong; what to do`."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
