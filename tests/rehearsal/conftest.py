"""A played cloud: empty, or with an environment deployed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from environment.services import SERVICES
from tests.rehearsal.deployed import deploy
from tests.rehearsal.played import Played
from tests.synthesis import Synthesis

FLEET = "three-teams-four-groups"


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Played]:
    """A project with all APIs on and nothing in it."""
    played = Played(folder=tmp_path / "empty", services=tuple(SERVICES))
    yield played
    played.close()


@pytest.fixture(scope="session")
def deployed_once(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    played = deploy(synthesis.folder("default"), tmp_path_factory.mktemp("deployed") / "world")
    yield played
    played.close()


@pytest.fixture
def deployed(deployed_once: Played, tmp_path: Path) -> Iterator[Played]:
    """The default environment, deployed: each test has its own copy."""
    played = deployed_once.copy(tmp_path / "deployed")
    yield played
    played.close()


@pytest.fixture(scope="session")
def fleet_once(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    played = deploy(synthesis.folder(FLEET), tmp_path_factory.mktemp("fleet") / "world")
    yield played
    played.close()


@pytest.fixture
def fleet(fleet_once: Played, tmp_path: Path) -> Iterator[Played]:
    """Three teams on four pool groups, deployed: each test has its own copy."""
    played = fleet_once.copy(tmp_path / "fleet")
    yield played
    played.close()
