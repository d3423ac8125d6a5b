"""Every stack and manifest of every case, against what was reviewed: `make snapshots` accepts a change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from tests.synthesis import CASES, EVERY_STACK, Synthesis


@pytest.mark.parametrize(("case", "stack"), EVERY_STACK)
def test_a_stack_is_what_was_reviewed(case: str, stack: str, synthesis: Synthesis, snapshot: SnapshotAssertion) -> None:
    assert synthesis.stack(case, stack) == snapshot(extension_class=JSONSnapshotExtension)


@pytest.mark.parametrize("case", CASES)
def test_the_manifests_are_what_was_reviewed(case: str, synthesis: Synthesis, snapshot: SnapshotAssertion) -> None:
    # The tag of an image changes with each of its files: tests/manifests/test_images.py.
    tags = re.compile(r"(-images/[a-z0-9-]+):[0-9a-f]{12}\b")
    manifests = {str(path): tags.sub(r"\1:TAG", text) for path, text in synthesis.manifests(case).items()}
    assert manifests == snapshot(extension_class=JSONSnapshotExtension)


@pytest.mark.published
def test_vars_env_documents_the_defaults_and_sets_nothing_else(synthesis: Synthesis) -> None:
    assert synthesis.environment_of(Path("vars.env")).settings == synthesis.environment("default").settings
