"""The fake project that the tests of this folder ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.google_project import FakeProject, google_project


@pytest.fixture
def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProject]:
    with google_project(tmp_path, monkeypatch) as fake:
        yield fake
