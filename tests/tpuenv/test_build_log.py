"""The cause of a failed build in one line of its log, with or without an expectation."""

from __future__ import annotations

import pytest

from rehearsal.build_service import Ran
from rehearsal.cloudbuild.builds import Build
from rehearsal.cloudbuild.config import Step
from rehearsal.cloudbuild.steps import Done
from tpuenv.rehearsals.build_log import cause, last_line_with

BUILD = Build(path="p", id_="1", status="FAILURE", trigger="t", commit="c", branch="main")
WHY = "Step #1 - 'apply' failed: exit status 1"

NO_RIGHT = """\
foundation: 1 to change

foundation: Terraform could not plan.
Error: Error creating Network: googleapi: Error 403: Permission denied
  with google_compute_network.network
Whoever has the right may grant it."""
BOXED = """\
╷
│ Error: Saved plan is stale
│
│ The given plan file can no longer be applied.
╵

foundation: Terraform stopped before all of it was applied."""
PROTECTED = """\
╷
│ Error: Instance cannot be destroyed
│
│ Resource terraform_data.guard has lifecycle.prevent_destroy
│ set, but the plan calls for this resource to be destroyed.
╵"""
DIFFERS = """\
foundation: 2 to change

foundation: it is not synthesized, and nothing of it was applied:
  a: there is no folder
Something changed since."""
TESTS = "F.\nE   KeyError: 1\nError: it said\nFAILED tests/a.py::b - KeyError\n1 failed, 4 passed in 60.00s"


def ran(said: str) -> Ran:
    steps = (Step(number=0, name="i", id_="test"), Step(number=1, name="i", id_="apply"))
    done = (Done(step=steps[0], status="SUCCESS", code=0), Done(step=steps[1], status="FAILURE", code=1))
    lines = "".join(f"Step #1 - 'apply': {line}\n" for line in said.splitlines())
    before = "Starting Step #0 - 'test'\nStep #0 - 'test': KeyError: no\nStarting Step #1 - 'apply'\n"
    log = f"{before}{lines}ERROR: {WHY}\n"
    return Ran(build=BUILD, steps=done, why=WHY, log=log)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (NO_RIGHT, "Error: Error creating Network: googleapi: Error 403: Permission denied"),
        (BOXED, "Error: Saved plan is stale"),
        (PROTECTED, "terraform_data.guard is protected until DELETION_PROTECTION=false"),
        (DIFFERS, "foundation: it is not synthesized, and nothing of it was applied:"),
        (TESTS, "1 failed, 4 passed in 60.00s, first FAILED tests/a.py::b"),
        ("ImportError while loading conftest\nE   no module\n", "ImportError while loading conftest"),
        ("Traceback (most recent call last):\n  File x\nKeyError: 'a'", "KeyError: 'a'"),
        ("--confirm: 'yes' is not the RESOURCE_PREFIX", "--confirm: 'yes' is not the RESOURCE_PREFIX"),
    ],
)
def test_the_cause_is_the_failed_step_s_own_words(said: str, words: str) -> None:
    assert cause(ran(said)) == f"{WHY}: {words}"


def test_a_build_without_a_log_has_its_status_as_the_cause() -> None:
    assert cause(ran("")) == WHY
    refused = Ran(build=BUILD, steps=(), why="plan.yaml:3: queueTtl: is not supported\nplan.yaml:4: more", log="")
    assert cause(refused) == "plan.yaml:3: queueTtl: is not supported plan.yaml:4: more"


def test_an_expected_failure_is_the_last_line_with_it() -> None:
    assert last_line_with(ran(DIFFERS), "no folder") == "a: there is no folder"
