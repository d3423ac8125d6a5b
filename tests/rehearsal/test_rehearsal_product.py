"""The product's own default environment in the played cloud."""

from __future__ import annotations

import pytest

from tests.rehearsal.played import Played


def test_a_second_plan_of_every_resource_finds_nothing_to_do(deployed: Played) -> None:
    changed = [
        address
        for address, item in deployed.resources.items()
        if item.type_ != "terraform_data" and not deployed.unchanged(address)
    ]
    assert changed == []
