"""The Makefile, where it does more than to call something."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from environment.project import ROOT


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not on the PATH")
def test_clean_leaves_a_state_that_terraform_could_not_write(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    state = tmp_path / "cdktf.out" / "stacks" / "foundation" / "errored.tfstate"
    state.parent.mkdir(parents=True)
    state.write_text("{}")
    done = subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "errored.tfstate is a state that Terraform could not write: bring it in with tpuenv recover" in done.stderr
    assert state.exists()
    state.unlink()
    subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"]
