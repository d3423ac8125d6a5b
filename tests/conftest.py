"""Fixtures that more than one test file uses."""

from __future__ import annotations

import pytest

from tests.synthesis import Synthesis


@pytest.fixture(scope="session")
def synthesis(tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    return Synthesis(tmp_path_factory.mktemp("synthesis"))
