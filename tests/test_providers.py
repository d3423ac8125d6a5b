"""The real providers judge every stack of every case, where a registry or a provider mirror can be reached: `make
test-providers`.

Nothing of Google's is called: the state is local, the token is a fake, and plans of new resources need no API.
`platform`, `queues` and `observability` read a live cluster to plan, so they are validated only.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import environment
from stacks.app import app
from tests.provider_plans import LOCAL_BACKEND, OFFLINE
from tests.synthesis import CASES, EVERY_STACK, HERE

pytestmark = pytest.mark.providers

READ_THE_CLUSTER = ("platform", "queues", "observability")


def terraform(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [os.environ.get("TERRAFORM_BINARY_NAME", "terraform"), *arguments],
        cwd=folder,
        env={**os.environ, "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1", **environment},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cases")
    for case in CASES:
        file = HERE / "cases" / f"{case}.env"
        offline = {"PROJECT_NUMBER": "123456789012"}
        configured = environment.load(file, process_env=offline, fleet=file.with_suffix(".fleet.yaml"))
        app(configured, root / case).synth()
    return root


@pytest.fixture(scope="module")
def initialised(synthesized: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a stack with its providers installed and a local state; skips where they cannot be had."""

    @cache
    def folder_or_reason(stack: str) -> Path | str:
        folder = tmp_path_factory.mktemp(stack)
        _put(synthesized, next(case for case, other in EVERY_STACK if other == stack), stack, folder)
        (folder / "backend_override.tf.json").write_text(LOCAL_BACKEND, encoding="utf-8")
        init = terraform(folder, "init", "-input=false", "-no-color")
        return folder if init.returncode == 0 else next(filter(_is_error, init.stderr.splitlines()), init.stderr)

    def initialise(stack: str) -> Path:
        found = folder_or_reason(stack)
        if isinstance(found, str):
            pytest.skip(f"the real providers cannot be had here (terraform init: {found.strip(' │')})")
        return found

    return initialise


def _is_error(line: str) -> bool:
    return "Error" in line


@pytest.mark.parametrize(("case", "stack"), EVERY_STACK)
def test_the_real_providers_accept_a_stack(
    case: str, stack: str, synthesized: Path, initialised: Callable[[str], Path]
) -> None:
    folder = initialised(stack)
    _put(synthesized, case, stack, folder)
    reply = json.loads(terraform(folder, "validate", "-json").stdout)
    assert reply["valid"], reply["diagnostics"]
    assert reply["warning_count"] == 0, reply["diagnostics"]


@pytest.mark.parametrize(("case", "stack"), [each for each in EVERY_STACK if each[1] not in READ_THE_CLUSTER])
def test_the_real_provider_plans_a_stack(
    case: str, stack: str, synthesized: Path, initialised: Callable[[str], Path]
) -> None:
    folder = initialised(stack)
    _put(synthesized, case, stack, folder)
    plan = terraform(folder, "plan", "-input=false", "-no-color", "-lock=false", **OFFLINE)
    assert plan.returncode == 0, plan.stderr
    resources = json.loads((folder / "cdk.tf.json").read_text(encoding="utf-8"))["resource"]
    assert f"Plan: {sum(len(by_id) for by_id in resources.values())} to add, 0 to change, 0 to destroy" in plan.stdout


def _put(synthesized: Path, case: str, stack: str, folder: Path) -> None:
    shutil.copytree(synthesized / case / "stacks" / stack, folder, dirs_exist_ok=True)
