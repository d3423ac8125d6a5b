"""The images of the recipes: which are in the environment's registry, and how those that are not get there."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from environment import Environment, project
from manifests.images import BadDockerfile, recipes_with_an_image, reference
from manifests.recipes import FOLDER, Recipe
from tpuenv.failure import Failed, WrongArgument
from tpuenv.google.clients import Clients, member
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
        *(*environment.names.image_build_options, "--substitutions", f"_IMAGE={missing.tagged}"),
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
    said = ""
    with subprocess.Popen(
        [program, *command[1:]], cwd=project.ROOT, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        for line in process.stderr or ():
            print(line, end="", file=sys.stderr, flush=True)
            said += line
    if process.returncode:
        raise Failed(
            f"{missing.recipe}: its image was not built: gcloud ended with exit code {process.returncode}; what it "
            f"printed says why. The images built before are in the registry{_refused(environment, clients, said)}"
        )
    built = image(environment, clients, missing.recipe)
    if built.pinned is None:
        raise Failed(f"{missing.recipe}: the build succeeded, and the registry does not have {missing.tagged}")
    return built


def _refused(environment: Environment, clients: Clients, said: str) -> str:
    """What to do where Google has refused the build, by what gcloud has said; "" where it has not."""
    names, who = environment.names, member(clients.principal)
    account = names.account_email(names.build_account)
    if re.search("NOT_FOUND|404|does not exist", said):
        return f".\nBuilds run as {account} and use gs://{names.build_bucket}: `tpuenv deploy foundation` makes both"
    if not re.search("PERMISSION_DENIED|403|[Ff]orbidden", said):
        return ""
    start = f"gcloud projects add-iam-policy-binding {names.project_id} --member={who}"
    act_as = f"gcloud iam service-accounts add-iam-policy-binding {account} --project={names.project_id} --member={who}"
    bucket = f"gcloud storage buckets add-iam-policy-binding gs://{names.build_bucket} --member={who}"
    return (
        f".\nGoogle refused it: who starts a build needs these roles to start it, to act as {account}, which it runs "
        "as, and to use the bucket of its source and its log. An administrator grants them with\n"
        f"  {start} --role=roles/cloudbuild.builds.editor\n"
        f"  {act_as} --role=roles/iam.serviceAccountUser\n"
        f"  {bucket} --role=roles/storage.objectUser\n"
        f"  {bucket} --role=roles/storage.legacyBucketReader"
    )
