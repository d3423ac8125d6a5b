"""What a rehearsal shows of teams: who may do what, and who gets what is idle."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rehearsal.slice_owners import lines
from tests.rehearsal.conftest import FLEET
from tests.rehearsal.fake import FakeCloud
from tests.rehearsal.states import write_states
from tests.synthesis import Synthesis


def resources(fake: FakeCloud, synthesis: Synthesis, case: str, stack: str) -> list[tuple[str, dict[str, Any]]]:
    """As they are in the stack's state."""
    bucket = write_states(fake, synthesis.folder(case))
    (state,) = [json.loads(blob.content) for blob in fake.cloud.blobs(bucket) if f"/{stack}/" in blob.name]
    return [(item["type"], item["instances"][0]["attributes"]) for item in state["resources"]]


def test_members_are_shown_with_what_they_may_do(fleet: FakeCloud, synthesis: Synthesis) -> None:
    shown = lines(resources(fleet, synthesis, FLEET, "platform"))
    assert shown[:3] == [
        "members of research: alice@example.com, group tpu-research@example.com",
        "members of serving: bob@example.com",
        "members of students: group students@example.com",
    ]
    (own,) = [line for line in shown if line.startswith("members of research, serving, students may, in their team's")]
    change, read, *_ = own.split(": ", 1)[1].split("; ")
    assert change.startswith("change ") and "jobsets" in change and "pods" not in change
    assert read.startswith("read ") and "pods/log" in read and "localqueues" in read
    (everywhere,) = [line for line in shown if line.startswith("every member may, in the whole cluster: ")]
    assert "read clusterqueues" in everywhere


def test_a_team_that_nobody_is_in_is_named(fleet: FakeCloud, synthesis: Synthesis) -> None:
    described = [
        (type_, values)
        for type_, values in resources(fleet, synthesis, FLEET, "platform")
        if not (type_ == "kubernetes_role_binding_v1" and values["metadata"][0]["namespace"] == "serving")
    ]
    shown = lines(described)
    assert "members of serving: none; only who administers the cluster submits jobs there" in shown
    assert any(line.startswith("members of research, students may, in their team's namespace: ") for line in shown)


def test_fair_sharing_is_what_kueues_configuration_says(fleet: FakeCloud, synthesis: Synthesis) -> None:
    described = resources(fleet, synthesis, FLEET, "platform")
    assert "fair sharing: what is idle goes to the team that borrows least for its share" in lines(described)
    (kueue,) = [values for type_, values in described if type_ == "helm_release" and values["name"] == "kueue"]
    kueue["values"] = [text.replace("fairSharing", "other") for text in kueue["values"]]
    assert "no fair sharing: what is idle goes to the job that came first" in lines(described)


def test_borrowing_and_lending_are_shown_in_chips(fleet: FakeCloud, synthesis: Synthesis) -> None:
    described = resources(fleet, synthesis, FLEET, "queues")
    assert lines(described) == [
        "research: borrowing at most 128 chips of pretrain, 8 chips of serve, 16 chips of burst, 16 chips of dev; "
        "lending what is idle; fair sharing weight 3",
        "serving: borrowing what others leave idle; lending nothing; fair sharing weight 1.5",
        "students: borrowing what others leave idle; lending what is idle; fair sharing weight 1",
    ]
    for _, values in described:
        body = (values.get("manifest") or {}).get("value") or {}
        if body.get("kind") == "ClusterQueue":
            body["spec"].pop("fairSharing")
    assert lines(described)[2] == "students: borrowing what others leave idle; lending what is idle"


@pytest.mark.parametrize("stack", ["platform", "queues"])
def test_one_team_alone_shares_with_nobody(stack: str, deployed: FakeCloud, synthesis: Synthesis) -> None:
    shown = lines(resources(deployed, synthesis, "default", stack))
    assert not any("borrowing" in line or "fair sharing" in line for line in shown)
