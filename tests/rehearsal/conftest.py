"""A fake cloud: empty, or with an environment deployed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from environment.services import SERVICES
from tests.rehearsal.deployed import deploy
from tests.rehearsal.fake import FakeCloud
from tests.synthesis import Synthesis

FLEET = "three-teams-four-groups"


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[FakeCloud]:
    """A project with all APIs on and nothing in it."""
    fake = FakeCloud(folder=tmp_path / "empty", services=tuple(SERVICES))
    yield fake
    fake.close()


@pytest.fixture(scope="session")
def deployed_once(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCloud]:
    fake = deploy(synthesis.folder("default"), tmp_path_factory.mktemp("deployed") / "world")
    yield fake
    fake.close()


@pytest.fixture
def deployed(deployed_once: FakeCloud, tmp_path: Path) -> Iterator[FakeCloud]:
    """The default environment, deployed: each test has its own copy."""
    fake = deployed_once.copy(tmp_path / "deployed")
    yield fake
    fake.close()


@pytest.fixture(scope="session")
def fleet_once(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCloud]:
    fake = deploy(synthesis.folder(FLEET), tmp_path_factory.mktemp("fleet") / "world")
    yield fake
    fake.close()


@pytest.fixture
def fleet(fleet_once: FakeCloud, tmp_path: Path) -> Iterator[FakeCloud]:
    """Three teams on four pool groups, deployed: each test has its own copy."""
    fake = fleet_once.copy(tmp_path / "fleet")
    yield fake
    fake.close()
