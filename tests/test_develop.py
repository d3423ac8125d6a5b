"""The examples of docs/develop.md work as they stand there."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from cdktf import App

from tests.synthesis import ROOT, Synthesis
from vocabulary import resource_types


def example(language: str) -> str:
    page = (ROOT / "docs" / "develop.md").read_text(encoding="utf-8")
    (code,) = re.findall(rf"^ *```{language}\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)
    return textwrap.dedent(code)


def test_the_stack_synthesizes_and_nothing_is_missing_about_its_type(
    synthesis: Synthesis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope: dict[str, Any] = {}
    exec(example("python"), scope)
    app = App(outdir=str(tmp_path))
    scope["Alerts"](app, "alerts", environment=synthesis.environment("default"))
    app.synth()
    synthesized = json.loads((tmp_path / "stacks" / "alerts" / "cdk.tf.json").read_text(encoding="utf-8"))
    (type_,) = synthesized["resource"].keys() - {"terraform_data"}
    monkeypatch.setattr(resource_types, "FOLDER", tmp_path)
    (tmp_path / f"{type_}.json").write_text(example("json"), encoding="utf-8")
    assert resource_types.missing_facts(type_) == []
    resource_types.facts_of.cache_clear()
