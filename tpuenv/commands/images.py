"""`tpuenv images`: which images of the recipes are in the environment's registry, and builds of the others."""

from __future__ import annotations

import shlex

import click

from environment import project
from environment.fleet.values import meant
from manifests.images import BadDockerfile, recipes_with_an_image
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.failure import WrongArgument
from vocabulary.printable import quoted


def _recipe_names(_context: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
    """For completion: the recipes with an image."""
    return [name for name in recipes_with_an_image() if name.startswith(begun)]


@command(
    summary="show and build the images of the recipes",
    help="""\
Shows which images of the recipes are in the environment's registry. The tag of an image is made of the files that it
is built from, so a changed Dockerfile, program or lock file is another image. For one that is not there it prints the
command that builds it with Cloud Build (cloudbuild/images.yaml); --build runs these commands, one after the other.
""",
    examples=("tpuenv images", "tpuenv images --build", "tpuenv images --build maxtext"),
    notes="Exit codes: 0 all images are there, 1 one is missing or could not be built.",
)
@click.argument(
    "recipes",
    nargs=-1,
    metavar="[RECIPE]...",
    help="only these; all if none is named",
    shell_complete=_recipe_names,
)
@options.flag("--build", "build and push those that are missing")
def images(*, recipes: tuple[str, ...], build: bool) -> int:
    """Raises environment.Refused, WrongArgument for a recipe that does not exist, Failed where Google does not answer
    or a build fails.
    """
    environment = project.load_for_google()
    known = recipes_with_an_image()
    for name in recipes:
        if name not in known:
            raise WrongArgument(f"there is no recipe {quoted(name)} with an image{meant(name, known)}")
    # Not before the arguments are known to be good: Google's libraries take a second to load.
    from tpuenv.google.clients import connect
    from tpuenv.jobs.images import build as build_image
    from tpuenv.jobs.images import build_command, image

    clients = connect(environment.settings.project_id)
    missing = False
    for name in recipes or known:
        try:
            shown = image(environment, clients, name)
        except BadDockerfile as bad:
            raise WrongArgument(str(bad)) from None
        if shown.pinned is None and build:
            print(f"{name}: building {shown.tagged}", flush=True)
            shown = build_image(environment, clients, shown)
        if shown.pinned is None:
            missing = True
            print(f"{name}: not in the registry; this builds it:\n  {shlex.join(build_command(environment, shown))}")
        else:
            print(f"{name}: {shown.pinned}", flush=True)
    return int(missing)
