"""Every package says what belongs into it, and imports only what it may."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from environment.project import ROOT
from tests.generate.layout import PACKAGES, docstring, layout, modules

# Less commands, which imports every other.
IN_THE_COMMAND = [path for path in (ROOT / "tpuenv").rglob("*") if path in PACKAGES and path.name != "commands"]


def test_each_package_imports_only_what_it_may(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NO_COLOR", "1")
    code = lint_imports(config_filename=os.fspath(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert code == 0, capfd.readouterr().out


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(ROOT)))
def test_each_package_says_what_belongs_into_it(package: Path) -> None:
    said = docstring(package / "__init__.py")
    assert said
    assert "mports" in said, "its docstring says what it may import"


@pytest.mark.parametrize("package", IN_THE_COMMAND, ids=lambda package: str(package.relative_to(ROOT)))
def test_what_a_package_of_the_command_says_that_it_imports_is_what_it_imports(package: Path) -> None:
    _, said = re.split(r"mports\s", docstring(package / "__init__.py"), maxsplit=1)
    named = set(re.findall(r"tpuenv\.\w+|\b(?:admission|environment|manifests|rehearsal|vocabulary)(?=/)", said))
    of_all = {
        "environment",
        "vocabulary",
        "tpuenv.failure",
        "tpuenv.terminal",
        ".".join(package.relative_to(ROOT).parts[:2]),
    }
    assert {name for file in modules(package) for name in _imports(file)} - of_all == named - of_all


def _imports(file: Path) -> Iterator[str]:
    """Packages of ours: "manifests", "tpuenv.jobs"."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and (ROOT / node.module.partition(".")[0]).is_dir():
            yield ".".join(node.module.split(".")[: 2 if node.module.startswith("tpuenv.") else 1])


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(ROOT)))
def test_a_package_that_names_most_of_its_files_names_all(package: Path) -> None:
    names = {file.stem for file in modules(package)}
    named = names & set(re.findall(r"\w+", docstring(package / "__init__.py")))
    assert len(named) <= len(names) / 2 or named == names


def test_make_layout_has_a_line_for_every_file() -> None:
    lines = "\n".join(layout())
    for package in PACKAGES:
        assert f"{package.relative_to(ROOT)}/: " in lines
        for file in modules(package):
            assert f"\n  {file.name} " in lines
            assert docstring(file), f"{file.relative_to(ROOT)} says in its first line what it is"
