"""The examples of docs/develop.md work as they stand there."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from manifests.recipes import recipe_named
from manifests.render import Run, arguments, rendered
from tests.recipe_folders import recipes_with
from tests.synthesis import ROOT, Synthesis
from vocabulary import resource_types


def example(language: str) -> str:
    page = (ROOT / "docs" / "develop.md").read_text(encoding="utf-8")
    (code,) = re.findall(rf"^ *```{language}\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)
    return textwrap.dedent(code)


def test_the_stack_synthesizes_and_nothing_is_missing_about_its_type(
    synthesis: Synthesis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdktf import App  # not before stacks, which makes the bindings fast to import

    scope: dict[str, Any] = {}
    exec(example("python"), scope)
    app = App(outdir=str(tmp_path))
    scope["Preemptions"](app, "preemptions", environment=synthesis.environment("default"))
    app.synth()
    synthesized = json.loads((tmp_path / "stacks" / "preemptions" / "cdk.tf.json").read_text(encoding="utf-8"))
    (type_,) = synthesized["resource"].keys() - {"terraform_data"}
    monkeypatch.setattr(resource_types, "FOLDER", tmp_path)
    (tmp_path / f"{type_}.json").write_text(example("json"), encoding="utf-8")
    assert resource_types.missing_facts(type_) == []
    resource_types.facts_of.cache_clear()


def test_the_parameters_of_the_recipe_are_read_and_its_words_are_made_of_them(
    synthesis: Synthesis, tmp_path: Path
) -> None:
    folder = recipes_with(tmp_path, "train", jobset="restarts: ${MAX_RESTARTS}\n", parameters=example("yaml"))
    configured = synthesis.environment("default")
    run = Run(
        recipe=recipe_named("train", folder),
        environment=configured,
        team=configured.teams[0],
        group=configured.groups[0],
        settings={"preset": "long"},
    )
    assert rendered(run) == {"jobset.yaml": "restarts: 10\n"}
    assert arguments(run) == {
        "steps": "100000",
        "dataset": "gs://my-project-tpu-tpu-training/data",
        "optimizer": "adamw",
        "ici_data": "4",
        "ici_model": "4",
        "dcn_data": "1",
    }
