"""A played cloud: empty, or with the product's default environment deployed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from environment.services import SERVICES
from tests.rehearsal.played import Played
from tests.synthesis import STACKS, Synthesis


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Played]:
    """A project with all APIs on and nothing in it."""
    played = Played(folder=tmp_path / "empty", services=tuple(SERVICES))
    yield played
    played.close()


@pytest.fixture(scope="session")
def deployed_once(synthesis: Synthesis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    played = Played(folder=tmp_path_factory.mktemp("deployed") / "world", services=tuple(SERVICES))
    (played.folder / "cdktf.out").symlink_to(synthesis.folder("default"))
    for stack in STACKS:
        played.deploy(synthesis.stack("default", stack))
    yield played
    played.close()


@pytest.fixture
def deployed(deployed_once: Played, tmp_path: Path) -> Iterator[Played]:
    """The default environment, deployed: each test has its own copy."""
    played = deployed_once.copy(tmp_path / "deployed")
    yield played
    played.close()
