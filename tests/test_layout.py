"""Every package says what belongs into it, and imports only what it may."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from environment.project import ROOT

# What is installed is in folders whose names begin with a dot.
PACKAGES = sorted(
    path.parent
    for folder in ROOT.iterdir()
    if not folder.name.startswith(".") and folder.name not in ("cdktf.out", "tests")
    for path in folder.rglob("__init__.py")
)


def test_each_package_imports_only_what_it_may(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NO_COLOR", "1")
    code = lint_imports(config_filename=os.fspath(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert code == 0, capfd.readouterr().out


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(ROOT)))
def test_each_package_says_what_belongs_into_it(package: Path) -> None:
    said = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
    assert said
    assert "mports" in said, "its docstring says what it may import"
