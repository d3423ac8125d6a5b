"""`make setup-workloads` finds a fit Python or says what to install, and installs what is locked, once."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from install import workloads
from install.install import install, to_do
from install.steps import Completed, Layout, Progress, SetupError

ROOT = Path(__file__).parent.parent.parent

EVERY_LOCK = pytest.mark.parametrize(
    "lock", sorted(ROOT.glob("manifests/*/requirements.txt")), ids=lambda path: path.parent.name
)


LOCKED = r"([a-z0-9-]+)(?:\[[a-z0-9, -]+\])?==(\S+)"


def locked_versions(lock: Path) -> list[tuple[str, str]]:
    return re.findall(f"^{LOCKED}", lock.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH; pyenv has nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.delenv("PYTHON_WORKLOADS", raising=False)
    return tmp_path


def python(file: Path, *, prints: str) -> Path:
    """A program that answers the probe; "" if it fails."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\necho '{prints}'\n" if prints else "#!/bin/sh\nexit 1\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(root=tmp_path / "a clone", folder=workloads.FOLDER)
    (layout.root / "install").mkdir(parents=True)
    for recipe in ("ray-maxtext", "tensorboard"):
        workloads.lock(layout, recipe).parent.mkdir(parents=True)
        workloads.lock(layout, recipe).write_text("")
    return layout


@pytest.mark.parametrize("name", ["python3", "python3.12", "pyenv/versions/3.12.1/bin/python"])
def test_a_python_of_the_locked_version_is_found(folder: Path, name: str) -> None:
    python(folder / "python3", prints="3.11")
    python(folder / name, prints="3.12")
    assert workloads.find_python().name == Path(name).name


def test_the_python_that_is_named_is_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python(folder / "python3.12", prints="3.12")
    mine = python(folder / "a folder" / "mine", prints="3.12")
    monkeypatch.setenv("PYTHON_WORKLOADS", str(mine))
    assert workloads.find_python() == mine


def test_where_there_is_none_it_says_what_to_install_and_which_there_are(folder: Path) -> None:
    python(folder / "python3", prints="3.14")
    python(folder / "python3.12", prints="3.12 without its venv module")
    with pytest.raises(SetupError) as error:
        workloads.find_python()
    assert str(error.value).splitlines() == [
        ".venv-workloads needs Python 3.12: install it (Debian and Ubuntu: apt install python3.12-venv; "
        "or: pyenv install 3.12), or name one with PYTHON_WORKLOADS=/path/to/python3.12",
        "  python3 is Python 3.14",
        "  python3.12 is Python 3.12 without its venv module",
    ]


def test_a_named_python_that_is_not_fit_is_refused_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python(folder / "python3.12", prints="3.12")
    monkeypatch.setenv("PYTHON_WORKLOADS", "/nowhere/python")
    with pytest.raises(SetupError, match=r"\n  /nowhere/python does not run$"):
        workloads.find_python()


def test_the_probe_answers_with_this_python() -> None:
    assert workloads._ask_version(sys.executable) == "{}.{}".format(*sys.version_info)


def test_elsewhere_than_on_a_tpu_hosts_platform_nothing_is_installed(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    with pytest.raises(SetupError, match=r"on Linux on x86_64 only, because libtpu has no package for .* on arm64"):
        workloads.install(layout, Progress(""))
    assert not layout.venv.exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="libtpu has packages for Linux only")
def test_an_interrupted_setup_goes_on_and_a_finished_one_does_nothing(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With an empty lock file: a virtual environment of this Python, and nothing in it but its pip."""
    monkeypatch.setattr(workloads, "PYTHON", sys.version_info[:2])
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("PYTHON_WORKLOADS", sys.executable)
    layout.bin.mkdir(parents=True)
    (layout.bin / "half-a-package").touch()
    with pytest.raises(SetupError, match=r"jax was not created"):
        install(layout, workloads.STEPS)
    assert not (layout.bin / "half-a-package").exists()
    assert not Completed(layout).is_current("workloads", workloads.inputs(layout))
    (jax,) = workloads._jax(layout)
    jax.mkdir()
    Completed(layout).record("workloads", workloads.inputs(layout))
    install(layout, workloads.STEPS)
    assert (layout.venv / "tensorboard" / "bin" / "python").exists()
    capsys.readouterr()
    install(layout, workloads.STEPS)
    assert capsys.readouterr().out == ""
    workloads.lock(layout).write_text("# changed")
    assert to_do(layout, workloads.STEPS)


@EVERY_LOCK
def test_a_lock_is_exact_with_checksums_and_names_no_server(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    requirements = re.findall(r"^[A-Za-z0-9].*\n", text, re.MULTILINE)
    assert requirements
    assert all(re.fullmatch(rf"{LOCKED} \\\n", line) for line in requirements)
    assert len(re.findall(r"\\\n    --hash=sha256:[0-9a-f]{64}", text)) >= len(requirements)
    assert not re.search(r"://|^-|^ *--(?!hash=)", text, re.MULTILINE)


@EVERY_LOCK
def test_what_is_asked_for_is_locked(lock: Path) -> None:
    asked = lock.with_suffix(".in").read_text(encoding="utf-8").splitlines()
    # What an extra brings is locked too, so whether its name is there does not matter.
    lines = [re.sub(r"\[.*\]", "", line) for line in asked if line and not line.startswith("#")]
    assert lines
    locked = dict(locked_versions(lock))
    for line in lines:
        name, _, version = line.partition("==")
        assert name in locked
        assert not version or locked[name] == version


@pytest.mark.parametrize("recipe", ["hello-tpu", "maxtext", "ray-jax", "ray-maxtext"])
def test_the_tests_run_a_recipe_with_the_packages_of_its_image(recipe: str) -> None:
    image = set(locked_versions(ROOT / "manifests" / recipe / "requirements.txt"))
    here = set(locked_versions(workloads.lock(Layout(root=ROOT))))
    assert image <= here
