"""Where a rehearsal may work: it empties its folder, so never where anybody else's files are, or will be."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from rehearsal.work_folder import MARK, CannotStart, cannot_be_used, usable
from tpuenv.main import main

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, as in a container, with a rehearsal's mark from before this was refused."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / MARK).touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def refusal(folder: Path, *, ours: bool = False) -> str:
    with pytest.raises(CannotStart) as refused:
        usable(folder, ours=ours)
    return str(refused.value)


@pytest.mark.parametrize(
    "folder", ["/", "/etc", "/usr/bin", ROOT, ROOT.parent, ROOT / "stacks", ".", tempfile.gettempdir()]
)
def test_a_folder_that_is_not_the_rehearsals_is_refused_and_nobody_is_asked_to_remove_it(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROJECT_ID", "my-project")
    before = sorted(os.listdir(folder))
    assert main(["rehearse", "--folder", str(folder)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"{Path(folder).resolve()} cannot be used: ")
    assert printed.err.endswith("; name a new or an empty folder with --folder\n")
    assert "remove" not in printed.err
    assert sorted(os.listdir(folder)) == before or str(folder) == tempfile.gettempdir()


def test_a_home_folder_is_never_emptied(home: Path) -> None:
    assert "is, or holds, the home folder" in refusal(home)
    assert "is, or holds, the home folder" in refusal(home.parent)
    assert usable(home / "rehearsal", ours=False) == home / "rehearsal"


def test_new_empty_and_marked_folders_are_used(tmp_path: Path) -> None:
    assert usable(tmp_path / "new", ours=False) == tmp_path / "new"
    (tmp_path / "w").mkdir()
    assert usable(tmp_path / "w", ours=False) == tmp_path / "w"
    (tmp_path / "w" / "cloud.db").touch()
    assert "files that no rehearsal wrote" in refusal(tmp_path / "w")
    (tmp_path / "w" / MARK).touch()
    assert usable(tmp_path / "w", ours=False) == tmp_path / "w"


def test_a_link_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").touch()
    (tmp_path / "link").symlink_to("precious")
    assert refusal(tmp_path / "link").startswith(f"{tmp_path / 'precious'} cannot be used")
    (tmp_path / "large-disk").mkdir()
    (tmp_path / "large").symlink_to("large-disk")
    assert usable(tmp_path / "large", ours=False) == tmp_path / "large-disk"


@pytest.mark.parametrize("to", ["nowhere", "link"])
def test_a_link_that_leads_nowhere_is_reported(tmp_path: Path, to: str) -> None:
    (tmp_path / "link").symlink_to(to)
    assert "link cannot be used: it is a symbolic link that leads nowhere; name a new" in refusal(tmp_path / "link")


def test_a_marks_link_is_no_mark(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "mine").touch()
    (tmp_path / "w" / MARK).symlink_to(tmp_path / "mine")
    assert "files that no rehearsal wrote" in refusal(tmp_path / "w")


def test_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert f"{tmp_path / 'file'} cannot be used: it is a file; name a new or an empty folder" in refusal(
        tmp_path / "file"
    )


def test_a_folder_that_cannot_be_written_is_reported_with_the_cause(tmp_path: Path) -> None:
    error = PermissionError(13, "Permission denied", str(tmp_path / "w.lock"))
    assert str(cannot_be_used(tmp_path / "w", error)) == (
        f"{tmp_path / 'w'} cannot be used: Permission denied ({tmp_path / 'w.lock'}); "
        "name a new or an empty folder with --folder"
    )


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc, where nobody can make a folder")
def test_a_place_where_no_folder_can_be_created_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROJECT_ID", "my-project")
    assert main(["rehearse", "--folder", "/proc/rehearsal"]) == 1
    assert capsys.readouterr().err.startswith("/proc/rehearsal cannot be used: ")
