"""`install/run` finds a Python that is fit, or prints which there are and what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with a space in its name, that holds install/run and a setup package that prints who runs it."""
    folder = tmp_path / "a clone"
    (folder / "install").mkdir(parents=True)
    shutil.copy(ROOT / "install" / "run", folder / "install" / "run")
    (folder / "install" / "__init__.py").touch()
    (folder / "install" / "__main__.py").write_text("import sys; print('installed with', *sys.argv[1:])")
    (tmp_path / "bin").mkdir()
    for tool in ("dirname", "sh"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or "")
    return folder


def python(repository: Path, name: str, *, says: str = "", fit: bool = False) -> Path:
    """A Python on PATH: this one, or one whose answer to the probe is `says`."""
    file = repository.parent / "bin" / name
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n' if fit else f"#!/bin/sh\necho '{says}'\nexit 1\n")
    file.chmod(0o755)
    return file


def run(repository: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    path = str(repository.parent / "bin")
    return subprocess.run(
        ["sh", repository / "install" / "run"],
        env={"PATH": path, **settings},
        cwd=repository.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def test_python3_is_used_when_it_is_fit(repository: Path) -> None:
    python(repository, "python3", fit=True)
    assert run(repository).stdout == "installed with\n"


def test_a_newer_python_is_used_when_python3_is_too_old(repository: Path) -> None:
    python(repository, "python3", says="is Python 3.9")
    python(repository, "python3.12", fit=True)
    assert run(repository).returncode == 0


def test_the_pythons_there_are_and_what_to_install_are_printed_when_none_is_fit(repository: Path) -> None:
    old = python(repository, "python3", says="is Python 3.9")
    bare = python(repository, "python3.11", says="is Python 3.11 without its venv module")
    done = run(repository)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "setup: needs Python 3.10 or newer: install it, or name one with PYTHON=/path/to/python3",
        f"  {old} is Python 3.9",
        f"  {bare} is Python 3.11 without its venv module",
    ]


def test_the_python_that_the_user_names_is_used_and_no_other(repository: Path) -> None:
    python(repository, "python3", fit=True)
    folder = repository.parent / "my pythons"
    folder.mkdir()
    mine = python(repository, "mine", fit=True).rename(folder / "mine")
    assert run(repository, PYTHON=str(mine)).returncode == 0
    assert run(repository, PYTHON=str(folder / "missing")).returncode == 1


def test_no_python_at_all_is_said_so(repository: Path) -> None:
    done = run(repository)
    assert done.returncode == 1
    assert done.stderr.startswith("setup: needs Python 3.10 or newer")


@pytest.mark.parametrize("setting", [{"PYTHONSAFEPATH": "1"}, {"PYTHONPATH": str(ROOT)}])
def test_the_users_python_settings_do_not_hide_the_setup(repository: Path, setting: dict[str, str]) -> None:
    python(repository, "python3", fit=True)
    assert run(repository, **setting).stdout == "installed with\n"


def test_a_finished_setup_is_recognized_without_a_search_for_python(repository: Path) -> None:
    ready = repository / ".venv" / "bin" / "python"
    ready.parent.mkdir(parents=True)
    ready.write_text('#!/bin/sh\ntest "$*" = "-m install --check"\n')
    ready.chmod(0o755)
    done = run(repository)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_python_that_made_the_environment_also_remakes_it(repository: Path) -> None:
    python(repository, "python3", fit=True)
    mine = repository / ".venv" / "bin" / "python"
    mine.parent.mkdir(parents=True)
    mine.write_text(f'#!/bin/sh\ntest "$3" = --check && exit 1\necho mine\nexec "{sys.executable}" "$@"\n')
    mine.chmod(0o755)
    assert run(repository).stdout == "mine\ninstalled with\n"


def test_the_probe_refuses_what_is_too_old_or_has_no_venv(repository: Path) -> None:
    script = (ROOT / "install" / "run").read_text()
    probe = script.split("probe='")[1].split("'\n")[0]
    for change, words in {
        "sys.version_info = (3, 9, 1)": "is Python 3.9",
        "sys.modules['ensurepip'] = None": "without its venv module",
    }.items():
        tried = subprocess.run(
            [sys.executable, "-c", f"import sys; {change}\n{probe}"], capture_output=True, text=True, check=False
        )
        assert tried.returncode == 1
        assert words in tried.stdout
    assert subprocess.run([sys.executable, "-c", probe], env=dict(os.environ), check=False).returncode == 0
