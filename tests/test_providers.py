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
def initialised(synthesized: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each stack with its providers installed and a local state; skips where they cannot be had."""
    folders = {}
    for stack, case in {stack: case for case, stack in EVERY_STACK}.items():
        folder = folders[stack] = tmp_path_factory.mktemp(stack)
        _put(synthesized, case, stack, folder)
        (folder / "backend_override.tf.json").write_text(LOCAL_BACKEND, encoding="utf-8")
        init = terraform(folder, "init", "-input=false", "-no-color")
        if init.returncode != 0:
            reason = next((line for line in init.stderr.splitlines() if "Error" in line), init.stderr)
            pytest.skip(f"the real providers cannot be had here (terraform init: {reason.strip(' │')})")
    return folders


@pytest.mark.parametrize(("case", "stack"), EVERY_STACK)
def test_the_real_providers_accept_a_stack(
    case: str, stack: str, synthesized: Path, initialised: dict[str, Path]
) -> None:
    folder = initialised[stack]
    _put(synthesized, case, stack, folder)
    reply = json.loads(terraform(folder, "validate", "-json").stdout)
    assert reply["valid"], reply["diagnostics"]
    assert reply["warning_count"] == 0, reply["diagnostics"]


@pytest.mark.parametrize(("case", "stack"), [each for each in EVERY_STACK if each[1] not in READ_THE_CLUSTER])
def test_the_real_provider_plans_a_stack(
    case: str, stack: str, synthesized: Path, initialised: dict[str, Path]
) -> None:
    folder = initialised[stack]
    _put(synthesized, case, stack, folder)
    plan = terraform(folder, "plan", "-input=false", "-no-color", "-lock=false", **OFFLINE)
    assert plan.returncode == 0, plan.stderr
    resources = json.loads((folder / "cdk.tf.json").read_text(encoding="utf-8"))["resource"]
    assert f"Plan: {sum(len(by_id) for by_id in resources.values())} to add, 0 to change, 0 to destroy" in plan.stdout


def _put(synthesized: Path, case: str, stack: str, folder: Path) -> None:
    shutil.copytree(synthesized / case / "stacks" / stack, folder, dirs_exist_ok=True)
