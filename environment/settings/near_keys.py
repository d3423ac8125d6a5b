"""Variables of the process environment that are nearly keys: set in a shell, they would be passed over in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from environment.problems import Problem
from environment.settings.model import KEYS
from vocabulary.printable import quoted

_LONG = 14  # letters of a key that may have two slips of the keyboard instead of one


def near_key_warnings(process_env: Mapping[str, str]) -> Iterator[Problem]:
    """A warning for each. A shell and a pipeline set a hundred variables that are none of ours: the first letter must
    be right, and what is meant must not be set as well.
    """
    for name in sorted(process_env):
        meant = "" if name in KEYS else _meant(name.upper())
        if meant and not process_env.get(meant, "").strip():
            yield Problem(
                keys=(quoted(name)[1:-1],),
                message=f"is set in your shell and is not a setting; did you mean {meant}? Unset it if not",
            )


def _meant(name: str) -> str:
    """The key that `name` is, but for a slip or two; "" if it is none."""
    for key in KEYS:
        slips = 2 if len(key) >= _LONG else 1
        if name[:1] == key[0] and abs(len(name) - len(key)) <= slips and _distance(name, key) <= slips:
            return key
    return ""


def _distance(left: str, right: str) -> int:
    """How many letters are wrong, missing, too many, or in the place of their neighbour (optimal string alignment)."""
    above: list[int] = []
    row = list(range(len(right) + 1))
    for i, letter in enumerate(left, start=1):
        before, above, row = above, row, [i]
        for j, other in enumerate(right, start=1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other)))
            if i > 1 and j > 1 and letter == right[j - 2] and left[i - 2] == other:
                row[j] = min(row[j], before[j - 2] + 1)
    return row[-1]
