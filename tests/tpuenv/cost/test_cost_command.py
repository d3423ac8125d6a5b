"""`tpuenv cost` as it is typed: what it prints, its exit codes, and what it does not need."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.synthesis import HERE, ROOT
from tpuenv.main import main

CASE = "three-teams-four-groups"

# What has no list price there.
OWN = """\
chip_hour: {usd: {ct5p: {reservation: 2.5}, ct5lp: {flex-start: 0.75}}}
disk_gib_month: {as_of: 2026-11-01, source: our contract, usd: {hyperdisk-balanced: 0.1}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(HERE / "cases" / f"{CASE}.env", tmp_path / "vars.env")
    shutil.copy(HERE / "cases" / f"{CASE}.fleet.yaml", tmp_path / "fleet.yaml")
    (tmp_path / "own.yaml").write_text(OWN)
    monkeypatch.setenv("TPUENV_FOLDER", str(tmp_path))
    return tmp_path


def test_prices_of_ones_own_fill_what_is_unknown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost"]) == 0
    assert "reservation  unknown   unknown" in capsys.readouterr().out
    assert main(["cost", "--prices", str(folder / "own.yaml")]) == 0
    shown = capsys.readouterr().out
    assert "unknown" not in shown
    assert "+" not in shown
    assert "  pretrain: 2 x v5p-256, 256 chips, reservation   640.00    640.00    467,200    467,200\n" in shown
    assert "  burst: 4 x v5litepod-16, 64 chips, flex-start     0.00     48.00          0     35,040\n" in shown
    assert "  2026-11-01  disk_gib_month: our contract\n" in shown
    assert "  no date  chip_hour: no source\n" in shown


def test_large_amounts_widen_their_columns_and_never_touch(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.yaml").write_text("chip_hour: {usd: 987654321}")
    assert main(["cost", "--prices", str(folder / "own.yaml")]) == 0
    shown = capsys.readouterr().out
    amounts = " +".join(re.escape(amount) for amount in ["15,802,469,136.00"] * 2 + ["11,535,802,469,280"] * 2)
    assert re.search(f"16 chips, on-demand +{amounts}\n", shown)
    assert len({len(line) for line in shown.splitlines() if " chips, " in line and line.endswith("280")}) == 1


def test_as_json_it_has_the_same_numbers_and_what_is_unknown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    dev = next(group for group in shown["pool_groups"] if group["name"] == "dev")
    assert dev == {
        "name": "dev",
        "type": "v6e-16",
        "slices": 4,
        "chips": 64,
        "capacity": "spot",
        "autoscaled": True,
        "idle": {"usd_per_hour": 0.0, "usd_per_month": 0.0, "unknown": {}},
        "busy": {"usd_per_hour": 77.76, "usd_per_month": 56764.8, "unknown": {}},
    }
    assert shown["total"]["busy"]["unknown"] == {
        "chips of ct5p, reservation": 256,
        "GiB of hyperdisk-balanced": 2000,
        "chips of ct5lp, flex-start": 64,
    }
    assert shown["kept_by_foundation"]["busy"] == {"usd_per_hour": 0.0, "usd_per_month": 0.0, "unknown": {}}
    assert shown["teams"][0]["slices"] == {"pretrain": 2, "dev": 2, "serve": 1, "burst": 3}
    assert {price["as_of"] for price in shown["prices"]} == {"2026-02-26", "2026-07-30", "2026-11-22"}


def test_slices_of_autopilot_cost_while_jobs_run_and_more_than_their_chips(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "fleet.yaml").unlink()
    monkeypatch.setenv("CLUSTER_MODE", "autopilot")
    assert main(["cost"]) == 0
    shown = capsys.readouterr().out
    assert "  tpu: 2 x v6e-16, 32 chips, on-demand     0.00     86.40+" in shown
    assert "  CPU pods, by their requests           unknown   unknown" in shown
    assert "  boot disks, " not in shown
    assert "8 nodes of Autopilot (premium and boot disks); 1 cluster's CPU pods (Autopilot)" in " ".join(shown.split())


def test_a_wrong_price_file_and_wrong_settings_end_it_with_exit_code_2(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "own.yaml").write_text("chip_hour: {usd: {ct6e: free}}")
    for command in ("cost", "plan"):
        monkeypatch.setenv("PROJECT_ID", "another-project")
        assert main([command, "--prices", str(folder / "own.yaml")]) == 2
        assert "own.yaml:1: chip_hour.usd.ct6e: 'free' is not a price" in capsys.readouterr().err
    monkeypatch.setenv("CPU_MAX_NODES", "none")
    assert main(["cost"]) == 2
    assert "CPU_MAX_NODES: 'none'" in capsys.readouterr().err


def test_it_needs_neither_google_nor_cdktf_nor_terraform(folder: Path) -> None:
    program = """
import sys
from tpuenv.main import main
assert main(["cost"]) == 0
print([name for name in ("cdktf", "jsii", "grpc", "requests", "google.cloud", "google.auth") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={"TPUENV_FOLDER": str(folder), "PATH": ""},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"
