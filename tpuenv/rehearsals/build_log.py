"""What a played build's log says of how it ended, in one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpuenv.terraform.errors import protected

if TYPE_CHECKING:
    from rehearsal.cloud_build import Ran

_MESSAGE_LINES = 8  # the longest paragraph that is taken for one message


def told(ran: Ran, words: Sequence[str]) -> str:
    """The last line that has the first of the words."""
    return next(line for line in reversed(_said(ran.log)) if words[0] in line).strip()


def cause(ran: Ran) -> str:
    """Why a build failed, in one line: of its failed step pytest's count, the first error, or its last words."""
    failed = next((done.step for done in ran.steps if done.status != "SUCCESS"), None)
    lines = [line for line in ran.log.splitlines() if failed and line.startswith(f"{failed.label}: ")]
    said = _said("\n".join(lines))
    words = _failed_tests(said) or _protected(said) or _error(said) or _last_words(said)
    why = " ".join(ran.why.splitlines())
    return f"{why}: {words}" if words else why


def _failed_tests(said: Sequence[str]) -> str:
    count = re.search(r"\d+ (?:failed|errors?)\b.* in [\d.]+s", said[-1]) if said else None
    first = next((line.split(" - ")[0] for line in said if re.match("(FAILED|ERROR) ", line)), "")
    return f"{count[0]}, first {first}" if count and first else count[0] if count else ""


def _protected(said: Sequence[str]) -> str:
    refused = protected("\n".join(said))
    return ", ".join(f"{address} is protected until {lifting}" for address, lifting in refused.items())


def _error(said: Sequence[str]) -> str:
    """Terraform's begins with the word, Python's with the name of an exception."""
    return next((line.strip("│ ") for line in said if re.match(r"[│ ]*(\w+\.)*\w*Error: ", line)), "")


def _last_words(said: Sequence[str]) -> str:
    """The first line of the last paragraph; the last line, if the paragraph is too long for a message."""
    text = "\n".join(line.rstrip() for line in said).strip()
    paragraph = text.rpartition("\n\n")[2].splitlines() or [""]
    return paragraph[0 if len(paragraph) <= _MESSAGE_LINES else -1].strip()


def _said(log: str) -> list[str]:
    """The lines of a log, without the names of the steps that said them."""
    return [re.sub(r"^Step #\d+ - '\w+': ?", "", line) for line in log.splitlines()]


def end(ran: Ran) -> str:
    """The end of the log, to read."""
    return "\n".join(f"    {line}" for line in ran.log.splitlines()[-40:])
