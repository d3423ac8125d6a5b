"""The tag of a recipe's image changes with the files that the image is built from, and with no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from manifests.images import BadDockerfile, built_from, content_tag, reference
from manifests.recipes import FOLDER
from tests.loading import loaded

DOCKERFILE = """\
# a comment
FROM python:3.12.11-slim-bookworm AS build
COPY --chown=1000:1000 program.py \\
  # between two lines
  requirements.txt /app/
COPY --from=build /opt /opt
RUN pip install --require-hashes -r /app/requirements.txt
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    folder = tmp_path / "train"
    folder.mkdir()
    (folder / "Dockerfile").write_text(DOCKERFILE)
    for name in ("program.py", "requirements.txt", "README.md", "jobset.yaml"):
        (folder / name).write_text(f"{name}\n")
    return folder


def test_an_image_is_built_from_the_dockerfile_and_the_files_that_it_copies(recipe: Path) -> None:
    assert built_from(recipe) == ("Dockerfile", "program.py", "requirements.txt")


@pytest.mark.parametrize("name", ["Dockerfile", "program.py", "requirements.txt"])
def test_the_tag_changes_with_each_of_them(recipe: Path, name: str) -> None:
    before = content_tag(recipe)
    assert re.fullmatch("[0-9a-f]{12}", before)
    (recipe / name).write_text((recipe / name).read_text() + "# more\n")
    assert content_tag(recipe) != before


def test_the_tag_changes_when_two_files_swap_their_contents(recipe: Path) -> None:
    before = content_tag(recipe)
    first, second = (recipe / name for name in ("program.py", "requirements.txt"))
    texts = first.read_text(), second.read_text()
    second.write_text(texts[0])
    first.write_text(texts[1])
    assert content_tag(recipe) != before


def test_the_tag_stays_when_other_files_of_the_recipe_change(recipe: Path) -> None:
    before = content_tag(recipe)
    (recipe / "README.md").write_text("other words\n")
    (recipe / "new.yaml").write_text("{}\n")
    assert content_tag(recipe) == before


def test_the_tag_is_the_same_in_every_checkout(recipe: Path, tmp_path: Path) -> None:
    before = content_tag(recipe)
    elsewhere = tmp_path / "elsewhere" / "other-name"
    elsewhere.parent.mkdir()
    recipe.rename(elsewhere)
    assert content_tag(elsewhere) == before


def test_the_reference_is_in_the_registry_of_the_environment(recipe: Path) -> None:
    environment = loaded()
    assert reference(environment, recipe) == f"{environment.names.registry_url}/train:{content_tag(recipe)}"


WRONG = {
    "a folder": ("COPY . /app", r"/train/Dockerfile:1: '\.': no such file was found in [^/]+/train; name each file"),
    "a file that is not there": (
        "COPY programme.py /",
        r"/train/Dockerfile:1: 'programme\.py': no such file was found",
    ),
    "a file of another recipe": ("COPY ../other.py /", r"'\.\./other\.py': no such file was found"),
    "a pattern": ("COPY *.py /", r"write COPY FILE\.\.\. TARGET"),
    "a list in JSON": ('COPY ["program.py", "/"]', r"write COPY FILE\.\.\. TARGET"),
    "text in the Dockerfile": ("COPY <<END /x", r"write COPY FILE\.\.\. TARGET"),
    "a download": ("ADD https://example.com/x /x", r"train/Dockerfile:1: ADD unpacks archives and downloads; use COPY"),
    "a mounted folder": ("RUN --mount=type=bind,target=/src make", r"RUN --mount reads files that no COPY names"),
}


@pytest.mark.parametrize(("line", "message"), WRONG.values(), ids=list(WRONG))
def test_a_dockerfile_with_files_that_the_tag_would_miss_is_refused(recipe: Path, line: str, message: str) -> None:
    (recipe / "Dockerfile").write_text(f"{line}\n")
    with pytest.raises(BadDockerfile, match=message):
        content_tag(recipe)


def test_a_recipe_without_a_dockerfile_is_refused(recipe: Path) -> None:
    (recipe / "Dockerfile").unlink()
    with pytest.raises(BadDockerfile, match=r"train/Dockerfile: there is no such file"):
        content_tag(recipe)


@pytest.mark.parametrize("dockerfile", sorted(FOLDER.glob("*/Dockerfile")), ids=lambda path: path.parent.name)
def test_every_recipe_has_a_tag(dockerfile: Path) -> None:
    assert re.fullmatch("[0-9a-f]{12}", content_tag(dockerfile.parent))


def test_a_name_that_no_file_can_have_is_no_file(recipe: Path) -> None:
    (recipe / "Dockerfile").write_text(f"FROM a\nCOPY {'a' * 300} /\n")
    with pytest.raises(BadDockerfile, match=r"no such file was found in [^/]+/train; name each file"):
        content_tag(recipe)


@pytest.mark.parametrize("before", ["", "# syntax=docker/dockerfile:1\n"])
def test_lines_that_another_character_continues_are_refused(before: str, recipe: Path) -> None:
    """A file on the second line of a COPY would not be in the tag."""
    copy = "COPY program.py `\n  requirements.txt /app/\n"
    (recipe / "Dockerfile").write_text(f"{before}# Escape = `\nFROM a\n{copy}")
    with pytest.raises(BadDockerfile, match=r"continues lines with another character than \\; remove escape="):
        content_tag(recipe)
    (recipe / "Dockerfile").write_text(f"# escape=\\\n{DOCKERFILE}")
    assert built_from(recipe) == ("Dockerfile", "program.py", "requirements.txt")
