"""docs/operate.md as blocks under headings, and the commands that a person types of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from environment.project import ROOT

PAGE = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
TABLE = "What to look at first"
NOT_RUN = ("gcloud", "kubectl", "git", "make")
FENCED = "^```(.*)\n((?:.*\n)*?)```$"


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block, and the heading that it is under."""

    heading: str
    kind: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The lines that a person types."""
        if self.kind == "text":
            return [self.text.splitlines()[0].removeprefix("$ ")]
        return self.text.replace("\\\n", "").splitlines() if self.kind == "sh" else []


def blocks(page: str) -> Iterator[Block]:
    """In their order, and before them one of the commands of the table."""
    table = page.partition(f"## {TABLE}\n")[2].partition("\n## ")[0]
    yield Block(heading=TABLE, kind="sh", text="\n".join(re.findall(r"^\|[^|]*\| `(.+?)` \|", table, re.MULTILINE)))
    heading = ""
    for part in re.finditer(f"^#+ (.+)$|{FENCED}", page, re.MULTILINE):
        if part[1]:
            heading = part[1]
        else:
            yield Block(heading=heading, kind=part[2], text=part[3])


BLOCKS = [*blocks(PAGE)]


def words(command: str) -> list[str]:
    """Without the comment at its end and the variable before it."""
    return shlex.split(re.sub("^[A-Z_]+=[^ ]+ ", "", command), comments=True)


def variables(command: str) -> dict[str, str]:
    """Those that are set for this command alone."""
    return dict(re.findall("^([A-Z_]+)=([^ ]+) ", command))


def sections() -> Iterator[tuple[str, list[Block]]]:
    headings = dict.fromkeys(block.heading for block in BLOCKS)
    return ((heading, [block for block in BLOCKS if block.heading == heading]) for heading in headings)
