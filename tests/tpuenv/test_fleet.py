"""`tpuenv fleet`: what it prints, and that it can be written to the very file that it describes."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from environment.project import ROOT
from tests import published
from tests.fleets import one_group
from tpuenv.main import main

PRINTED = "tpu_pools:\n  tpu: {type: v6e-16, slices: 2}\nteams:\n  tpu-training: {share: 1, members: [a@b.com]}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPUENV_FOLDER", str(published.folder(tmp_path)))
    return tmp_path


def empty_keys(folder: Path) -> None:
    text = published.vars_env()
    for key, value in (("TPU_TYPE", "v6e-16"), ("NUM_TPU_POOLS", "2"), ("NAMESPACE", "tpu-training")):
        text = text.replace(f"\n{key}={value}\n", f"\n{key}=\n")
    (folder / "vars.env").write_text(text)


def test_the_fleet_of_vars_env_is_printed_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMBERS", "a@b.com")
    assert main(["fleet"]) == 0
    printed = capsys.readouterr()
    assert printed.out == PRINTED
    assert "TPU_TYPE= NUM_TPU_POOLS= NAMESPACE= MEMBERS= (empty)" in printed.err


def test_it_can_be_written_where_there_is_none_and_replaces_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMBERS", "a@b.com")
    assert main(["fleet", "--write"]) == 0
    assert (folder / "fleet.yaml").read_text() == PRINTED
    keys = "TPU_TYPE, NUM_TPU_POOLS, NAMESPACE and MEMBERS"
    assert capsys.readouterr().out == (
        f"Wrote {folder / 'fleet.yaml'}. Now empty {keys} in vars.env; then nothing changes.\n"
    )
    (folder / "fleet.yaml").write_text("mine: 1\n")
    assert main(["fleet", "--write"]) == 2
    assert "there is a fleet.yaml already" in capsys.readouterr().err
    assert (folder / "fleet.yaml").read_text() == "mine: 1\n"


def test_a_fleet_file_that_the_shell_has_emptied_is_not_taken_for_none(folder: Path) -> None:
    """`tpuenv fleet > fleet.yaml`: what was in the file is gone before the command begins, and it must say so."""
    empty_keys(folder)
    command = f"'{sys.executable}' -m tpuenv fleet > '{folder / 'fleet.yaml'}'"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert "fleet.yaml is empty: a shell that redirects into a file empties it first. Restore it" in done.stderr


def test_with_a_fleet_file_it_prints_what_that_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty_keys(folder)
    (folder / "fleet.yaml").write_text(one_group("type: v6e-16, slices: 1, capacity: on-demand, zone: us-east5-a"))
    assert main(["fleet"]) == 0
    printed = capsys.readouterr()
    assert printed.out == (
        "tpu_pools:\n  dev: {type: v6e-16, slices: 1, zone: us-east5-a}\nteams:\n  research: {share: 1}\n"
    )
    assert printed.err == "This is what fleet.yaml says.\n"


def test_a_fleet_file_that_is_wrong_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty_keys(folder)
    (folder / "fleet.yaml").write_text("\n")
    assert main(["fleet"]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "fleet.yaml:1: is empty; it should hold tpu_pools and teams\n")


def test_a_fleet_file_that_cannot_be_written_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.link", full)
    before = sorted(folder.iterdir())
    assert main(["fleet", "--write"]) == 1
    assert capsys.readouterr().err == f"{folder / 'fleet.yaml'}: cannot be written: No space left on device\n"
    assert sorted(folder.iterdir()) == before
