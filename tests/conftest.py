"""Fixtures that more than one test file uses, and a process environment that no test has to mistrust."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from cli.project import FOLDER
from environment.settings import KEYS
from tests import published
from tests.synthesis import Synthesis

# What leads to a cloud, real or played, or steers Terraform.
_LEADING = ("GOOGLE_", "CLOUDSDK_", "KUBE", "TF_REATTACH", "TF_VAR_", "TF_CLI_ARGS", "TF_DATA_DIR", "TF_WORKSPACE")


@pytest.fixture(scope="session", autouse=True)
def as_published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests are about the project and not about the settings that its owner has made, in vars.env or elsewhere;
    and they reach no cloud, also where a build or a shell has credentials.
    """
    before = dict(os.environ)
    for name in before:
        if name in KEYS or name.startswith(_LEADING):
            del os.environ[name]
    os.environ[FOLDER] = str(published.folder(tmp_path_factory.mktemp("published")))
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def synthesis(tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    return Synthesis(tmp_path_factory.mktemp("synthesis"))
