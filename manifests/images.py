"""The image of a recipe: the files that it is built from, the tag that follows from them, its name in a registry."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from environment import Environment
from manifests.recipe import shown
from vocabulary.printable import limited, quoted
from vocabulary.text_file import Unreadable, read_text

DOCKERFILE = "Dockerfile"
TAG_LENGTH = 12  # hexadecimal digits

_FOLDER = Path(__file__).parent

_COPIES_A_STAGE = "--from="


class BadDockerfile(ValueError):
    """A Dockerfile from which the files of the image cannot be read. The text has a line for every mistake."""


def recipes_with_an_image(folder: Path = _FOLDER) -> tuple[str, ...]:
    """The names of the recipes that have a Dockerfile, sorted."""
    return tuple(sorted(path.parent.name for path in folder.glob(f"*/{DOCKERFILE}")))


def reference(environment: Environment, recipe: Path) -> str:
    """The image of the recipe in this folder, by its tag in the environment's registry. Raises BadDockerfile."""
    return f"{environment.names.registry_url}/{recipe.name}:{content_tag(recipe)}"


def content_tag(recipe: Path) -> str:
    """The tag of the image of the recipe in this folder: 12 hexadecimal digits of a SHA-256 over the names and the
    contents of the files that it is built from. Raises BadDockerfile.

    The base image and what the build downloads are in it as far as these files pin them.
    """
    digest = hashlib.sha256()
    for name in built_from(recipe):
        try:
            content = (recipe / name).read_bytes()
        except OSError as error:
            raise BadDockerfile(f"{shown(recipe, name)}: cannot be read: {error.strerror}") from None
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:TAG_LENGTH]


def built_from(recipe: Path) -> tuple[str, ...]:
    """The Dockerfile and the files that it copies, as sorted names in the recipe's folder. Raises BadDockerfile.

    A Dockerfile may only copy files that it names, because these are all that the tag is made of.
    https://docs.docker.com/reference/dockerfile/#copy
    """
    try:
        text = read_text(recipe / DOCKERFILE, holds="the steps of an image's build")
    except Unreadable as error:
        raise BadDockerfile(f"{shown(recipe, DOCKERFILE)}: {error}") from None
    names, mistakes = {DOCKERFILE}, []
    folder = shown(recipe)
    if re.match(r"(\s*#.*\n)*?\s*#\s*escape\s*=\s*[^\\\s]", text, re.IGNORECASE):
        mistakes.append(f"{folder}/{DOCKERFILE}: continues lines with another character than \\; remove escape=")
    for line, instruction in _instructions(text):
        copied, problems = _copied(instruction)
        problems += [
            f"{quoted(name)}: no such file was found in {folder}; name each file of the folder that the image needs"
            for name in copied
            if not _is_in(recipe, name)
        ]
        names.update(copied)
        mistakes += [f"{folder}/{DOCKERFILE}:{line}: {problem}" for problem in problems]
    if mistakes:
        raise BadDockerfile(limited(mistakes))
    return tuple(sorted(names))


def _instructions(text: str) -> Iterator[tuple[int, str]]:
    """Each instruction, without comments, its lines joined; and the number of its first line."""
    begun, first = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        first = first or number
        if line.rstrip().endswith("\\"):
            begun += line.rstrip()[:-1] + " "
            continue
        yield first, (begun + line).strip()
        begun, first = "", 0
    if begun:
        yield first, begun.strip()


def _copied(instruction: str) -> tuple[list[str], list[str]]:
    """The names of the files that one instruction copies out of the recipe's folder, and what is wrong with it."""
    keyword, *words = instruction.split()
    if keyword.upper() == "ADD":
        return [], ["ADD unpacks archives and downloads; use COPY"]
    if keyword.upper() == "RUN" and any(word.startswith("--mount=") for word in words):
        return [], ["RUN --mount reads files that no COPY names; use COPY"]
    if keyword.upper() != "COPY" or any(word.startswith(_COPIES_A_STAGE) for word in words):
        return [], []
    words = [word for word in words if not word.startswith("--")]
    if len(words) < 2 or any(re.search(r"""[*?\[\]$<"'\\]""", word) for word in words[:-1]):
        return [], [f"{quoted(instruction)}: write COPY FILE... TARGET, with the plain name of each file"]
    return [str(Path(word)) for word in words[:-1]], []


def _is_in(recipe: Path, name: str) -> bool:
    path = recipe / name
    try:
        return (
            not Path(name).is_absolute() and ".." not in Path(name).parts and path.is_file() and not path.is_symlink()
        )
    except OSError:  # a name longer than names can be
        return False
