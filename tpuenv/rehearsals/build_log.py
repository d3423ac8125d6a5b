"""How a build ended, in one line of its log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpuenv.terraform.errors import protected

if TYPE_CHECKING:
    from rehearsal.build_service import Ran

_MESSAGE_LINES = 8  # the longest paragraph that is taken for one message


def last_line_with(ran: Ran, text: str) -> str:
    """The last line of the log with this text, which it has to have."""
    return next(line for line in reversed(_lines(ran.log)) if text in line).strip()


def cause(ran: Ran) -> str:
    """Why a build failed, in one line: of its failed step pytest's count, the first error, or its last paragraph."""
    failed = next((done.step for done in ran.steps if done.status != "SUCCESS"), None)
    lines = _lines(ran.log, start=f"{failed.label}: ") if failed else []
    words = _failed_tests(lines) or _protected(lines) or _error(lines) or _last_paragraph(lines)
    why = " ".join(ran.why.splitlines())
    return f"{why}: {words}" if words else why


def _failed_tests(lines: Sequence[str]) -> str:
    count = re.search(r"\d+ (?:failed|errors?)\b.* in [\d.]+s", lines[-1]) if lines else None
    first = next((line.split(" - ")[0] for line in lines if re.match("(FAILED|ERROR) ", line)), "")
    return f"{count[0]}, first {first}" if count and first else count[0] if count else ""


def _protected(lines: Sequence[str]) -> str:
    refused = protected("\n".join(lines))
    return ", ".join(f"{address} is protected until {lifting}" for address, lifting in refused.items())


def _error(lines: Sequence[str]) -> str:
    """Terraform's begins with the word, Python's with the name of an exception."""
    return next((line.strip("│ ") for line in lines if re.match(r"[│ ]*(\w+\.)*\w*Error: ", line)), "")


def _last_paragraph(lines: Sequence[str]) -> str:
    """The first line of the last paragraph; the last line, if the paragraph is too long for a message."""
    text = "\n".join(line.rstrip() for line in lines).strip()
    paragraph = text.rpartition("\n\n")[2].splitlines() or [""]
    return paragraph[0 if len(paragraph) <= _MESSAGE_LINES else -1].strip()


def _lines(log: str, *, start: str = "") -> list[str]:
    """The lines of a log that begin with `start`, without the name of the step, with which Cloud Build begins them."""
    return [re.sub(r"^Step #\d+ - '\w+': ?", "", line) for line in log.splitlines() if line.startswith(start)]


def end(ran: Ran) -> str:
    """The end of the log, to read."""
    return "\n".join(f"    {line}" for line in ran.log.splitlines()[-40:])
