"""What is in use, and which jobs have to stop for another."""

from __future__ import annotations

import copy

from admission import Verdict, explain
from tests.admission_cases import codes_of, fleet, holder, manifest_of, queue_of, train


def test_amounts_of_all_pod_sets_are_in_use() -> None:
    held = holder("a", "tpu-training", 16)
    held["status"]["admission"]["podSetAssignments"] *= 2
    assert explain([*fleet(), held], train("tpu-training")).verdict == Verdict.WAITS


def test_a_borrower_at_its_limit_waits() -> None:
    manifest = manifest_of("beyond-the-borrowing-limit")
    manifest["spec"]["replicatedJobs"][0]["replicas"] = 1
    assert explain(fleet("mixed"), manifest).verdict == Verdict.ADMITTED
    full = [*fleet("mixed"), holder("a", "guests", 8, flavor="dev")]
    assert codes_of(explain(full, manifest)) == ["quota-in-use"]


def test_who_would_borrow_takes_back_only_together_with_stopping_its_own() -> None:
    """Half of its quota is in use by a lower job of its own: it may not borrow and reclaim at the same time."""
    held = [holder("theirs", "research", 24), holder("own", "serving", 8)]
    explanation = explain([*fleet("two-teams"), *held], train("serving", priority="high"))
    assert sorted(explanation.preempts) == ["research/theirs", "serving/own"]


def test_who_would_borrow_and_may_stop_nobody_of_its_own_waits() -> None:
    held = [holder("theirs", "research", 24), holder("own", "serving", 8, priority=1000)]
    explanation = explain([*fleet("two-teams"), *held], train("serving", priority="high"))
    assert (explanation.verdict, explanation.preempts) == (Verdict.WAITS, ())


def test_a_team_is_stopped_only_as_long_as_it_borrows() -> None:
    objects = fleet("two-teams")
    third = copy.deepcopy(queue_of(objects, "serving"))
    third["metadata"]["name"] = "third"
    held = [
        holder("a", "research", 8, priority=0),
        holder("b", "research", 16, priority=1),
        holder("c", "third", 24, priority=2),
    ]
    assert explain([*objects, third, *held], train("serving")).preempts == ("third/c",)


def test_lower_or_newer_equal_priority_stops_lower_ones_only() -> None:
    """A job that is new now is not older than an equal one that runs."""
    objects = fleet()
    queue_of(objects, "tpu-training")["spec"]["preemption"]["withinClusterQueue"] = "LowerOrNewerEqualPriority"
    held = [holder("a", "tpu-training", 32, priority=500)]
    assert explain([*objects, *held], train("tpu-training", priority="medium")).preempts == ()
    assert explain([*objects, *held], train("tpu-training", priority="high")).preempts == ("tpu-training/a",)
