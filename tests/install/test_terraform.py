"""Which Terraform the setup takes, and that a download is what was published."""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from install import packages, terraform
from install.install import STEPS
from install.steps import Layout, Progress, SetupError

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """An empty environment, a PATH of one empty folder (and the system's, for sh), and downloads that reach nobody."""
    (tmp_path / "repo" / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "on the path").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "on the path"))
    monkeypatch.setattr(terraform, "DOWNLOADS", "http://127.0.0.1:9/terraform")
    return Layout(root=tmp_path / "repo")


def program(folder: Path, name: str, *, version: str) -> None:
    """A program that answers `version -json` as Terraform and OpenTofu do, and repeats its arguments otherwise."""
    file = folder / name
    file.write_text(
        "#!/bin/sh\n"
        f"""if [ "$1" = version ]; then echo '{{"terraform_version": "{version}", "platform": "x"}}'; exit 0; fi\n"""
        f"""echo {name} "$@"\n"""
    )
    file.chmod(0o755)


def run(layout: Layout, *arguments: str) -> str:
    return subprocess.run([layout.terraform, *arguments], capture_output=True, text=True, check=True).stdout


def on_path(layout: Layout) -> Path:
    return layout.root.parent / "on the path"


@pytest.mark.parametrize("version", ["1.6.0", "1.11.4", "1.13.0-rc1", "2.0.0"])
def test_the_terraform_on_path_is_taken(layout: Layout, version: str) -> None:
    program(on_path(layout), "terraform", version=version)
    program(on_path(layout), "tofu", version="1.10.0")
    assert terraform.install(layout) == f"Terraform v{version} ({on_path(layout) / 'terraform'})"
    assert run(layout, "plan", "-out=a file") == "terraform plan -out=a file\n"


def test_opentofu_is_taken_where_terraform_is_too_old(layout: Layout) -> None:
    program(on_path(layout), "terraform", version="1.5.7")
    program(on_path(layout), "tofu", version="1.6.2")
    assert terraform.install(layout).startswith("OpenTofu v1.6.2")
    assert run(layout, "apply") == "tofu apply\n"


def test_a_terraform_that_does_not_run_is_passed_over(layout: Layout) -> None:
    (on_path(layout) / "terraform").write_text("#!/bin/sh\nexit 1\n")
    (on_path(layout) / "terraform").chmod(0o755)
    program(on_path(layout), "tofu", version="1.10.0")
    assert terraform.install(layout).startswith("OpenTofu")


def test_the_environments_own_terraform_is_not_taken_for_one_on_path(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(on_path(layout), "terraform", version="1.11.4")
    monkeypatch.setenv("PATH", f"{layout.bin}{os.pathsep}{os.environ['PATH']}")
    terraform.install(layout)
    terraform.install(layout)
    assert run(layout, "apply") == "terraform apply\n"


def test_without_any_terraform_one_line_says_what_there_is_and_what_to_install(layout: Layout) -> None:
    program(on_path(layout), "terraform", version="1.5.7")
    with pytest.raises(SetupError) as refused:
        terraform.install(layout)
    message = str(refused.value)
    assert "\n" not in message
    assert "Terraform or OpenTofu 1.6 or newer" in message
    assert f"{on_path(layout) / 'terraform'} is Terraform v1.5.7" in message
    assert "cannot be downloaded" in message
    assert not layout.terraform.exists()


def test_a_platform_without_a_pinned_release_is_named(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(SetupError, match=r"no pinned release for \w+_riscv64"):
        terraform.install(layout)


def release(content: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("LICENSE.txt", "BUSL")
        file.writestr("terraform", content)
    return archive.getvalue()


def test_a_download_that_is_what_was_published_is_unpacked(layout: Layout) -> None:
    archive = release(b"#!/bin/sh\necho downloaded\n")
    terraform.unpack(archive, expected=hashlib.sha256(archive).hexdigest(), target=layout.terraform)
    assert run(layout) == "downloaded\n"


def test_a_download_that_is_not_what_was_published_is_refused(layout: Layout) -> None:
    expected = hashlib.sha256(release(b"real")).hexdigest()
    with pytest.raises(SetupError, match="is not what was published"):
        terraform.unpack(release(b"forged"), expected=expected, target=layout.terraform)
    assert not layout.terraform.exists()


def test_another_terraform_on_path_is_a_change(layout: Layout) -> None:
    seen = [terraform.inputs(layout)]
    for name, version in (("tofu", "1.10.0"), ("terraform", "1.11.4"), ("terraform", "1.12.10")):
        program(on_path(layout), name, version=version)
        seen.append(terraform.inputs(layout))
    assert all(before != after for before, after in itertools.pairwise(seen))
    assert seen[-1] == terraform.inputs(layout)


def test_on_a_bare_machine_it_is_missed_before_anything_is_installed(tmp_path: Path) -> None:
    """The real setup, with Python and a shell, and neither Terraform nor a way to download it."""
    (tmp_path / "clone").mkdir()
    (tmp_path / "bin").mkdir()
    for name in ("requirements.txt", "package.json", "package-lock.json"):
        shutil.copy(ROOT / name, tmp_path / "clone" / name)
    for tool in ("sh", "dirname"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or "")
    python = tmp_path / "bin" / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    shutil.copytree(ROOT / "install", tmp_path / "clone" / "install", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        ["sh", "install/run"],
        cwd=tmp_path / "clone",
        env={"PATH": str(tmp_path / "bin"), "HTTPS_PROXY": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("setup: needs Terraform or OpenTofu 1.6 or newer on PATH, and release ")
    assert "Install one: developer.hashicorp.com/terraform/install" in line
    assert "packages" not in done.stdout
    assert sorted(path.name for path in (tmp_path / "clone" / ".venv").iterdir()) == ["setup.json"]


def test_it_stays_when_the_packages_are_installed_again(layout: Layout) -> None:
    program(on_path(layout), "terraform", version="1.11.4")
    terraform.install(layout)
    packages._empty(layout.venv)
    assert run(layout, "plan") == "terraform plan\n"
    assert STEPS[0].name == "terraform"


def test_the_environments_commands_have_it_first_on_path(layout: Layout) -> None:
    program(on_path(layout), "terraform", version="1.11.4")
    terraform.install(layout)
    (commands,) = [step for step in STEPS if step.name == "commands"]
    for _ in range(2):
        commands.install(layout, Progress("Commands"))
    assert shutil.which("terraform", path=str(layout.bin)) == str(layout.bin / "terraform")
    ran = subprocess.run([layout.bin / "terraform", "plan"], capture_output=True, text=True, check=True)
    assert ran.stdout == "terraform plan\n"
