"""Plans of the real Terraform, read: with its own resources alone, so that no provider and no cloud is needed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tpuenv.review.plans import Plan, PlanFailed, initialize, plan_stack
from tpuenv.terraform.stacks import Stack

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on the PATH"),
]


class Small:
    """A stack of `terraform_data`, its state in a file."""

    def __init__(self, folder: Path) -> None:
        self.stack = Stack(name="small", folder=folder)

    def planned(self, **configuration: Any) -> Plan:
        body = {"terraform": {"backend": {"local": {"path": "state"}}}, **configuration}
        (self.stack.folder / "cdk.tf.json").write_text(json.dumps(body))
        return plan_stack(initialize(self.stack), salt="salt", lock=["-lock=false"])

    def deployed(self, **configuration: Any) -> str:
        """What Terraform said."""
        plan = self.planned(**configuration)
        process = initialize(self.stack).run("apply", "-no-color", plan.file.name)
        assert process.returncode == 0, process.stdout
        return process.stdout


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def data(**attributes: Any) -> dict[str, Any]:
    return {"terraform_data": {"one": attributes}}


def test_a_secret_of_a_real_plan_is_nowhere_and_its_change_is_reported(
    small: Small, capsys: pytest.CaptureFixture[str]
) -> None:
    small.deployed(resource=data(input={"user": "me", "password": '${sensitive("hush")}'}))
    plan = small.planned(resource=data(input={"user": "you", "password": '${sensitive("hush-hush")}'}))
    plan.show()
    shown = capsys.readouterr().out
    assert 'input.user: "me" -> "you"' in shown
    assert "input.password: (sensitive value) -> (sensitive value, another)" in shown
    assert "hush" not in shown + repr(plan.changes)


def test_what_forces_a_replacement_is_reported(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    small.deployed(resource=data(triggers_replace="a"))
    small.planned(resource=data(triggers_replace="b")).show()
    shown = capsys.readouterr().out
    assert "small: 1 to replace" in shown
    assert "  replace: terraform_data.one (it cannot be changed in place)" in shown
    assert 'triggers_replace: "a" -> "b"   # forces replacement' in shown


def test_what_is_no_longer_described_is_reported(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    small.deployed(resource=data(input="a"))
    small.planned().show()
    assert "  delete: terraform_data.one (it is no longer in the configuration)" in capsys.readouterr().out


def test_a_plan_without_changes_is_empty(small: Small) -> None:
    small.deployed(resource=data(input="a"), output={"o": {"value": "x"}})
    assert small.planned(resource=data(input="a"), output={"o": {"value": "x"}}).empty
    assert not small.planned(resource=data(input="a"), output={"o": {"value": "y"}}).empty


def test_an_error_is_printed_as_terraform_prints_it(small: Small) -> None:
    small.deployed(resource=data(lifecycle={"prevent_destroy": True}, triggers_replace="a"))
    with pytest.raises(PlanFailed, match=r"small: Terraform could not plan") as failure:
        small.planned(resource=data(lifecycle={"prevent_destroy": True}, triggers_replace="b"))
    assert "Resource terraform_data.one has lifecycle.prevent_destroy set" in " ".join(failure.value.output.split())
    with pytest.raises(PlanFailed, match="No argument or block type is named"):
        small.planned(resource={"terraform_data": {"one": {"nonsense": 1}}})
