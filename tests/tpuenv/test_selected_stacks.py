"""Which stacks the commands of builds take where none is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpuenv.failure import WrongArgument
from tpuenv.terraform.stacks import Stack, selected_stacks


def stacks(*names: str) -> list[Stack]:
    return [Stack(name=name, folder=Path(name)) for name in names]


def selected(described: list[Stack], *names: str) -> list[str]:
    return [stack.name for stack in selected_stacks(described, names)]


def test_tpu_vms_are_left_to_a_person_only_beside_a_pipeline() -> None:
    assert selected(stacks("foundation", "queues", "tpu-vms")) == ["foundation", "queues", "tpu-vms"]
    assert selected(stacks("foundation", "pipeline", "queues", "tpu-vms")) == ["foundation", "queues"]


def test_a_stack_that_is_named_is_taken() -> None:
    assert selected(stacks("foundation", "pipeline", "tpu-vms"), "tpu-vms") == ["tpu-vms"]
    with pytest.raises(WrongArgument, match="there is no such stack"):
        selected(stacks("foundation"), "tpu-vms")
