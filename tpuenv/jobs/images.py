"""The images of the recipes: which are in the environment's registry, and how those that are not get there."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from environment import Environment, project
from manifests.images import BadDockerfile, recipes_with_an_image, reference
from manifests.recipes import FOLDER, Recipe
from tpuenv.failure import Failed, WrongArgument
from tpuenv.google.clients import Clients
from tpuenv.google.registry import by_digest

BUILD = "cloudbuild/images.yaml"


@dataclass(frozen=True, kw_only=True)
class Image:
    """The image of a recipe: by its tag, and by its digest, which is None where the registry does not have it."""

    recipe: str
    tagged: str
    pinned: str | None


def image(environment: Environment, clients: Clients, recipe: str) -> Image:
    """Asks the registry for the image of that recipe. Raises Failed, and manifests.images.BadDockerfile."""
    tagged = reference(environment, FOLDER / recipe)
    return Image(recipe=recipe, tagged=tagged, pinned=by_digest(clients, tagged))


def pinned_images(environment: Environment, clients: Clients, recipe: Recipe) -> dict[str, str]:
    """By recipe, the digest of each image that runs of `recipe` use. Raises Failed where the registry lacks one."""
    try:
        own = [recipe.name] if recipe.name in recipes_with_an_image() else []
        used = [image(environment, clients, name) for name in (*own, *recipe.images)]
    except BadDockerfile as bad:
        raise WrongArgument(str(bad)) from None
    if missing := [item for item in used if item.pinned is None]:
        names = ", ".join(item.tagged for item in missing)
        how = how_to_build([item.recipe for item in missing])
        raise Failed(f"image: the registry has no {names}, and without it no pod starts; {how}")
    return {item.recipe: item.pinned for item in used if item.pinned is not None}


def how_to_build(recipes: Sequence[str]) -> str:
    """The command that builds and pushes the images of these recipes, in words."""
    return f"`tpuenv images --build {' '.join(recipes)}` builds it"


def build_command(environment: Environment, missing: Image) -> list[str]:
    """The words of the command that builds and pushes an image, to be run in the checkout's folder."""
    return [
        *("gcloud", "builds", "submit", str(Path(FOLDER.name, missing.recipe)), "--config", BUILD),
        *("--project", environment.settings.project_id, "--substitutions", f"_IMAGE={missing.tagged}"),
    ]


def build(environment: Environment, clients: Clients, missing: Image) -> Image:
    """Runs that command, which prints the build's log, and asks the registry again. Raises Failed."""
    command = build_command(environment, missing)
    program = shutil.which(command[0])
    if program is None:
        raise Failed(
            "gcloud: not found on the PATH; install it (https://cloud.google.com/sdk/docs/install), or run this where "
            "it is installed:\n"
            f"  {shlex.join(command)}"
        )
    code = subprocess.run([program, *command[1:]], cwd=project.ROOT, check=False).returncode
    if code:
        raise Failed(
            f"{missing.recipe}: its image was not built: gcloud ended with exit code {code}; what it printed says why. "
            "The images built before are in the registry"
        )
    built = image(environment, clients, missing.recipe)
    if built.pinned is None:
        raise Failed(f"{missing.recipe}: the build succeeded, and the registry does not have {missing.tagged}")
    return built
