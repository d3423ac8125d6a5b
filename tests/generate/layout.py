"""Prints where what is: `make layout`. Of each package what belongs there, of each of its files the first line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from environment.project import ROOT

NAME_WIDTH = 24  # what is longer moves its description to the right

# What is installed is in folders whose names begin with a dot.
PACKAGES = sorted(
    path.parent
    for folder in ROOT.iterdir()
    if not folder.name.startswith(".") and folder.name not in ("cdktf.out", "tests")
    for path in folder.rglob("__init__.py")
)


def docstring(file: Path) -> str:
    """Of a module; "" if it has none."""
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def modules(package: Path) -> list[Path]:
    """The files of a package, but not what imports and starts it."""
    return sorted(file for file in package.glob("*.py") if not file.name.startswith("__"))


def layout() -> Iterator[str]:
    """The lines for all packages."""
    for package in PACKAGES:
        first, _, _ = docstring(package / "__init__.py").partition("\n\n")
        yield f"{package.relative_to(ROOT)}/: {' '.join(first.split())}"
        for file in modules(package):
            yield f"  {file.name:{NAME_WIDTH}}  {docstring(file).splitlines()[0]}"
        yield ""


if __name__ == "__main__":
    print("\n".join(layout()), end="")
