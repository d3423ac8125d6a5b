"""`.venv/bin/cdktf` and `.venv/bin/tpuenv` work from any folder, with the environment's own programs first."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from install.cdktf_cli import UNREACHABLE as NPM_UNREACHABLE
from install.install import STEPS
from install.packages import UNREACHABLE as PIP_UNREACHABLE
from install.steps import Layout, Progress


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """An environment in a folder whose name needs quoting, with a node that prints what it was started with."""
    layout = Layout(root=tmp_path / 'it\'s a "folder" $HOME')
    layout.bin.mkdir(parents=True)
    layout.python.symlink_to(sys.executable)
    program = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"
    layout.node.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(program)} "$@"\n')
    layout.node.chmod(0o755)
    (commands,) = (step for step in STEPS if step.name == "commands")
    commands.install(layout, Progress("Commands"))
    return layout


def test_cdktf_runs_on_the_environments_node_with_its_programs_first_on_path(layout: Layout, tmp_path: Path) -> None:
    out = subprocess.run(
        [layout.bin / "cdktf", "deploy", "*", "an argument"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    arguments, environment = json.loads(out.stdout)
    cli = str(layout.node_modules / "cdktf-cli" / "bundle" / "bin" / "cdktf")
    patches = [f"--require={layout.root / 'cdktf_patches' / name}" for name in ("interrupts.cjs", "lazy_hcl2cdk.cjs")]
    assert arguments == [*patches, cli, "deploy", "*", "an argument"]
    assert environment["PATH"].split(os.pathsep)[0] == str(layout.bin)


@pytest.mark.parametrize("service", ["CHECKPOINT_DISABLE", "DISABLE_VERSION_CHECK"])
def test_cdktf_calls_no_service_unless_a_variable_allows_it(layout: Layout, service: str) -> None:
    for settings, reached in (({}, "1"), ({service: ""}, "")):
        others = {name: value for name, value in os.environ.items() if name != service}
        out = subprocess.run(
            [layout.bin / "cdktf"], env={**others, **settings}, capture_output=True, text=True, check=True
        )
        assert json.loads(out.stdout)[1][service] == reached


@pytest.mark.parametrize(("set_to", "runs"), [(None, "terraform"), ("", "terraform"), ("tofu", "tofu")])
def test_cdktf_runs_terraform_through_the_environments_own_program(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, set_to: str | None, runs: str
) -> None:
    monkeypatch.delenv("TERRAFORM_BINARY_NAME", raising=False)
    if set_to is not None:
        monkeypatch.setenv("TERRAFORM_BINARY_NAME", set_to)
    environment = json.loads(subprocess.run([layout.bin / "cdktf"], capture_output=True, check=True).stdout)[1]
    assert environment["TERRAFORM_BINARY_NAME"] == str(layout.bin / "terraform-for-cdktf")
    assert environment["TPUENV_TERRAFORM"] == runs


def test_tpuenv_runs_the_projects_program_wherever_it_is_called(layout: Layout, tmp_path: Path) -> None:
    for root, says in ((layout.root, "ours"), (tmp_path, "another")):
        (root / "tpuenv").mkdir()
        (root / "tpuenv" / "__init__.py").touch()
        (root / "tpuenv" / "__main__.py").write_text(
            f"import os, sys; print('{says}', sys.argv[1:], os.getcwd() == {str(tmp_path)!r}); sys.exit(2)"
        )
    out = subprocess.run(
        [layout.bin / "tpuenv", "rehearse", "a b"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (out.returncode, out.stdout, out.stderr) == (2, "ours ['rehearse', 'a b'] True\n", "")


@pytest.mark.parametrize(
    ("words", "signs"),
    [
        ("connection broken by 'NewConnectionError('<HTTPSConnection>: Temporary failure')'", PIP_UNREACHABLE),
        ("Failed to establish a new connection: [Errno 111] Connection refused", PIP_UNREACHABLE),
        ("npm error code ENOTFOUND", NPM_UNREACHABLE),
        ("npm error FetchError: request failed, reason: connect ECONNREFUSED 127.0.0.1:9", NPM_UNREACHABLE),
    ],
)
def test_a_missing_network_is_known_by_what_pip_and_npm_say(words: str, signs: tuple[str, ...]) -> None:
    assert any(sign in words for sign in signs)
