"""Reads the flat `KEY=value` form of vars.env.

A line is empty, a comment, or `KEY=value`. The value ends at the line's end or before ` #`; a pair of single or double
quotes around it is removed, and what is inside is taken as it is. Spaces around key and value do not count, and
`export ` before the key is allowed, so that a shell can source the file. Nothing is expanded: `$` is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from environment.problems import Problem
from vocabulary.printable import quoted
from vocabulary.text_file import Unreadable, read_text

_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
_QUOTED = re.compile(r"""(?:"([^"]*)"|'([^']*)')[ \t]*(?:#.*)?""")


@dataclass(kw_only=True)
class VarsFile:
    """What one file says: values by key, the line of each key, and every line that could not be read.

    `readable` is False if nothing is known of the file, not even its keys.
    """

    readable: bool = True
    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_vars_file(path: Path) -> VarsFile:
    """Never raises: a file that is missing, unreadable, too big or not UTF-8 is a problem like any other."""
    name = path.name or str(path)
    try:
        return _parse(name, read_text(path, holds="a few KEY=value lines"))
    except Unreadable as error:
        return VarsFile(readable=False, problems=[Problem(keys=(name,), message=str(error))])


def _parse(name: str, text: str) -> VarsFile:
    read = VarsFile()
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = line.strip(" \t")
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            _complain(read, name, f"line {number}: {quoted(line)} is not of the form KEY=value")
            continue
        key, rest = match.groups()
        if key in read.values:
            _complain(read, key, f"is set twice, on lines {read.lines[key]} and {number}; keep one")
            continue
        value, wrong = _value(rest)
        if wrong:
            _complain(read, key, f"line {number}: {wrong}")
        read.values[key] = value
        read.lines[key] = number
    return read


def _value(rest: str) -> tuple[str, str]:
    """The value, and what is wrong with it or an empty string."""
    if rest[:1] in ("'", '"'):
        match = _QUOTED.fullmatch(rest)
        if match is None:
            return "", f"{quoted(rest)} has a quote that is not closed, or text after the closing one"
        value = match.group(1) or match.group(2) or ""
    else:
        value = re.split(r"(?:^|[ \t])#", rest, maxsplit=1)[0].rstrip(" \t")
    if "$" in value:
        return "", f"{quoted(value)} has a '$'; nothing is expanded here, write the value out"
    return value, ""


def _complain(read: VarsFile, key: str, message: str) -> None:
    read.problems.append(Problem(keys=(key,), message=message))
