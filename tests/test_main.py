"""main.py, as cdktf runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import main
from environment import project
from manifests.recipes import BadManifest
from tests.reused_synthesis.copy_synthesis import OF_CDKTF
from tests.synthesis import ROOT, STACKS
from tpuenv.failure import WrongArgument
from tpuenv.terraform import stacks
from vocabulary import resource_types


def synthesize(folder: Path, *, hcl: bool) -> set[str]:
    """What `cdktf synth`, or with `--hcl`, makes of the default environment; all that Terraform would read of it."""
    variables = {"PROJECT_ID": "my-project", "CDKTF_OUTDIR": str(folder), "SYNTH_HCL_OUTPUT": str(hcl).lower()}
    subprocess.run([sys.executable, "main.py"], cwd=ROOT, env={**os.environ, **variables}, check=True)
    return {str(path.relative_to(folder / "stacks")) for path in folder.glob("stacks/*/*.tf*")}


@pytest.mark.slow
def test_terraform_never_reads_a_stack_twice_whichever_form_was_there_before(tmp_path: Path) -> None:
    for hcl in (False, True, False):
        form = "cdk.tf" if hcl else "cdk.tf.json"
        assert synthesize(tmp_path, hcl=hcl) == {f"{stack}/{form}" for stack in STACKS}


@pytest.mark.slow
def test_what_tests_reuse_is_what_main_py_writes_and_prints(tmp_path: Path) -> None:
    """Also in a folder with the manifests of another environment; what cdktf runs; and where nothing can be
    synthesized.
    """
    variables = {"PROJECT_ID": "my-project", "TPU_TIPE": "v6e-16"}
    reusing = {**variables, "PYTHONPATH": str(ROOT / "tests" / "reused_synthesis")}

    def run(folder: str, variables: Mapping[str, str]) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "main.py"],
            cwd=ROOT,
            env={**os.environ, **variables, "CDKTF_OUTDIR": str(tmp_path / folder)},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout, done.stderr

    def written(folder: str) -> dict[Path, bytes]:
        files = [path for path in (tmp_path / folder).rglob("*") if path.is_file()]
        return {path.relative_to(tmp_path / folder): path.read_bytes() for path in files}

    expected = run("real", variables)
    assert "TPU_TIPE" in expected[2]
    assert run("reused", {**reusing, "TPU_TYPE": "v5p-128"})[0] == 0
    before = written("reused")
    assert before != written("real")
    for _ in range(2):
        assert run("reused", reusing) == expected
        assert written("reused") == written("real")
    assert run("reused", {**reusing, **OF_CDKTF}) == run("real", {**variables, **OF_CDKTF})
    assert written("reused") == written("real")
    bad = {"TPU_TYPE": "v6e-17"}
    assert run("reused", {**reusing, **bad}) == run("real", {**variables, **bad})


@pytest.mark.slow
def test_what_terraform_itself_keeps_beside_a_stack_stays(tmp_path: Path) -> None:
    kept = tmp_path / "stacks" / "foundation" / ".terraform.lock.hcl"
    kept.parent.mkdir(parents=True)
    kept.write_text("")
    synthesize(tmp_path, hcl=False)
    assert kept.exists()


def test_nothing_is_written_into_a_folder_that_holds_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    monkeypatch.setattr(project, "ROOT", checkout)
    monkeypatch.setenv("PROJECT_ID", "my-project")
    for folder in (checkout, tmp_path):
        monkeypatch.setenv("CDKTF_OUTDIR", str(folder))
        assert main.main() == 2
        assert f"--output: '{folder}' holds this checkout" in capsys.readouterr().err
        assert list(checkout.iterdir()) == []


def test_a_manifest_that_cannot_be_rendered_is_an_error_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise BadManifest("manifests/serve/server.yaml:1: ${HOST} is not a name")

    monkeypatch.setenv("PROJECT_ID", "my-project")
    monkeypatch.setenv("CDKTF_OUTDIR", str(tmp_path / "out"))
    monkeypatch.setattr("manifests.render.render", refuse)
    assert main.main() == 2
    assert capsys.readouterr().err == "manifests/serve/server.yaml:1: ${HOST} is not a name\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "folder", ["manifests", "tests/stacks", "docs", ".git", ".git/new", ".venv", ".venv/bin", ".venv-workloads"]
)
def test_nothing_is_written_into_a_folder_that_holds_files_of_the_checkout(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(str(ROOT / folder), monkeypatch, capsys) == (
        f"--output: '{ROOT / folder}' holds files of this checkout; name a folder that is there for it alone\n"
    )


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("/dev/null", "'/dev/null' is a file; name a folder"),
        ("/dev/null/out", "'/dev/null' is a file; name a folder"),
        ("/proc/nope", "'/proc/nope': No such file or directory"),
        (f"/tmp/{'x' * 256}", f"'/tmp/{'x' * 256}': File name too long"),
    ],
)
def test_an_output_that_cannot_be_a_folder_is_refused_in_one_line(
    folder: str, problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(folder, monkeypatch, capsys) == f"--output: {problem}\n"


@pytest.mark.parametrize("folder", ["cdktf.out", "new/folder", ".venv/rehearsal/1/output"])
def test_a_new_folder_of_the_checkout_is_an_output(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(str(ROOT / folder), monkeypatch, capsys) == "not refused\n"


@pytest.mark.parametrize(
    ("names", "is_refused"),
    [
        (["notes.txt"], True),
        (["notes.txt", "stacks"], True),
        (["manifest.json", "notes.txt"], False),
        (["manifests", "stacks"], False),
        ([], False),
    ],
)
def test_a_folder_of_the_checkout_that_a_synthesis_did_not_write_to_is_refused(
    names: list[str], is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(project, "ROOT", tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in names:
        path = folder / name
        path.write_text("") if path.suffix else path.mkdir()
    problem = f"--output: '{folder}' holds files of this checkout; name a folder that is there for it alone\n"
    assert refusal(str(folder), monkeypatch, capsys) == (problem if is_refused else "not refused\n")
    assert sorted(os.listdir(folder)) == names


def refusal(folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What main.py prints for this output folder, where nothing is synthesized."""

    def stop(*_: object) -> None:
        raise BadManifest("not refused")

    monkeypatch.setenv("PROJECT_ID", "my-project")
    monkeypatch.setenv("CDKTF_OUTDIR", folder)
    monkeypatch.setattr("manifests.render.render", stop)
    assert main.main() == 2
    return capsys.readouterr().err


def test_what_main_refuses_is_a_wrong_argument_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROJECT_ID", "my-project")
    (tmp_path / "file").write_text("")
    with pytest.raises(WrongArgument) as refused:
        stacks.synthesize(tmp_path / "file")
    assert str(refused.value) == f"--output: '{tmp_path / 'file'}' is a file; name a folder"


@pytest.mark.nested_too_deeply
@pytest.mark.parametrize("text", ["{", "[]", '{"permissions": 1}', '{"nosuch": 1}', "[" * 100_000, "\udcff"])
def test_a_damaged_file_of_a_resource_type_is_one_line(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text(text, errors="surrogateescape")
    monkeypatch.setattr(resource_types, "FOLDER", tmp_path)
    monkeypatch.setattr("stacks.app.write_stacks", lambda *_: resource_types.facts_of("x"))
    monkeypatch.setenv("PROJECT_ID", "my-project")
    monkeypatch.setenv("CDKTF_OUTDIR", str(tmp_path / "out"))
    assert main.main() == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("vocabulary/resource_types/x.json: ")
    assert line.endswith("; correct it, or restore it from git")


def test_a_stack_that_node_cannot_write_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifest.json").mkdir()
    monkeypatch.setenv("PROJECT_ID", "my-project")
    monkeypatch.setenv("CDKTF_OUTDIR", str(tmp_path))
    assert main.main() == 2
    error = f"EISDIR: illegal operation on a directory, open '{tmp_path / 'manifest.json'}'"
    assert capsys.readouterr().err == f"--output: {error}\n"
