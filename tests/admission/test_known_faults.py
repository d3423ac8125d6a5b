"""Known faults of pinned versions: who meets them is told how to avoid them, as long as that version is pinned."""

from __future__ import annotations

import pytest

from admission import Verdict, explain
from admission.known_faults import KNOWN_FAULTS, KnownFault
from tests.admission_cases import Object, changed, fleet, manifest_of
from tests.generate.admission_rules_table import page
from vocabulary.sources import CHARTS

_NOTE = "the others are refused for ever"


def _with_backoff_limit(limit: int | None) -> Object:
    return changed(manifest_of("jobset-one-slice"), {"job": {"backoffLimit": limit}})


@pytest.mark.parametrize(("limit", "noted"), [(0, False), (1, True), (None, True)])
def test_a_retry_under_exclusive_topology_is_noted_and_not_refused(limit: int | None, noted: bool) -> None:
    explanation = explain(fleet(), _with_backoff_limit(limit))
    assert explanation.verdict == Verdict.ADMITTED
    notes = [note for note in explanation.notes if _NOTE in note]
    assert len(notes) == int(noted), explanation.lines()
    assert all("jobset/pull/1276" in note and "set backoffLimit: 0" in note for note in notes)


def test_a_retry_of_one_pod_or_without_exclusive_topology_is_not_noted() -> None:
    alone = manifest_of("three-servers-on-single-hosts")
    shared = _with_backoff_limit(4)
    del shared["spec"]["replicatedJobs"][0]["template"]["metadata"]
    for manifest, name in ((alone, "mixed"), (shared, "one-team")):
        assert not any(_NOTE in note for note in explain(fleet(name), manifest).notes)


@pytest.mark.parametrize("fault", KNOWN_FAULTS, ids=lambda fault: f"{fault.project}-{fault.until}")
def test_no_row_outlives_the_version_with_the_fault(fault: KnownFault) -> None:
    pinned = CHARTS[fault.chart].version
    assert _numbers(pinned) <= _numbers(fault.until), (
        f"{fault.project} {pinned} is pinned, and the fault was known until {fault.until}: "
        f"delete its row from admission/known_faults.py, or where {fault.issues[0]} is still open, raise `until`"
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.removeprefix("v").split(".")))


def test_every_row_is_on_the_page_of_rules_with_its_issues() -> None:
    for fault in KNOWN_FAULTS:
        assert fault.issues
        assert all(issue in page() for issue in fault.issues)
