"""A fake cloud: empty, or with an environment deployed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from environment.services import SERVICES
from tests.rehearsal.fake import FakeCloud

FLEET = "three-teams-four-groups"


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[FakeCloud]:
    """A project with all APIs on and nothing in it."""
    fake = FakeCloud(folder=tmp_path / "empty", services=tuple(SERVICES))
    yield fake
    fake.close()


@pytest.fixture
def deployed(deployed_once: FakeCloud, tmp_path: Path) -> Iterator[FakeCloud]:
    """The default environment, deployed: each test has its own copy."""
    fake = deployed_once.copy(tmp_path / "deployed")
    yield fake
    fake.close()


@pytest.fixture
def fleet(fleet_once: FakeCloud, tmp_path: Path) -> Iterator[FakeCloud]:
    """Three teams on four pool groups, deployed: each test has its own copy."""
    fake = fleet_once.copy(tmp_path / "fleet")
    yield fake
    fake.close()
