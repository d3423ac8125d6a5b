"""What of the documented manifests a team's namespace refuses is known, a row each, with the reason of its rule."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from admission.workload import KINDS
from tests.generate.documented_manifests import FACTS, computed, written
from tests.yaml_files import documents
from vocabulary.team_rules import RULES

(KNOWN,) = documents(FACTS)
ROWS = [row for repository in KNOWN["repositories"] for row in repository["refused"]]


def test_the_list_is_as_the_generator_writes_it() -> None:
    assert FACTS.read_text(encoding="utf-8") == written(KNOWN)
    for repository in KNOWN["repositories"]:
        assert repository["taken"] > 0


def test_every_row_breaks_rules_and_every_rule_that_is_broken_has_a_reason() -> None:
    assert ROWS
    for row in ROWS:
        assert row["kind"] in KINDS
        assert {*row["codes"]} >= {*row.get("host_access", ())}
    assert {code for row in ROWS for code in row["codes"]} == KNOWN["reasons"].keys()
    assert {*KNOWN["reasons"]} <= {rule.code for rule in RULES}


@pytest.mark.corpus
@pytest.mark.timeout(1200)
def test_the_list_is_what_the_repositories_have() -> None:
    folder = os.environ.get("CORPUS")
    if not folder:
        pytest.skip("CORPUS is not set: name the folder with the repositories, OWNER+NAME/repo")
    assert computed(KNOWN, Path(folder)) == KNOWN
