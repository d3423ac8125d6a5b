"""`tpuenv render`: the manifest of one run of a recipe, filled in for this environment."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from environment import project
from manifests.images import recipes_with_an_image
from manifests.parameters import Parameter
from manifests.recipe import Recipe
from manifests.render import BadManifest, Run, rendered
from tpuenv.commands import options
from tpuenv.commands.command import command
from tpuenv.compilation.question import can_be_compiled
from tpuenv.failure import Failed, WrongArgument
from tpuenv.google import login
from tpuenv.jobs.runs import known_recipe, run_of
from vocabulary.printable import printable
from vocabulary.text_file import new_file_for


@command(
    summary="print the manifest of a run, filled in for this environment",
    examples=(
        "tpuenv render hello-tpu --keys                 what --set takes",
        "tpuenv render hello-tpu | kubectl create -f -  submit a run on one slice",
        "tpuenv render hello-tpu --slices 2 --set ici_model=4",
    ),
    notes="Every deploy renders the same manifests with the recipe's name and its defaults, as Kustomize bases in "
    "cdktf.out/manifests/{team}/{pool group}/{recipe}.",
)
@options.run
@options.flag("--keys", "list what --set takes, and print no manifest")
@options.value(
    "-o",
    "FILE",
    "write it to this file, in place of what is there, instead of printing it",
    type=click.Path(path_type=Path),
)
def render(
    *,
    recipe: str,
    team: str | None,
    group: str | None,
    slices: int,
    settings: tuple[str, ...],
    name: str | None,
    keys: bool,
    o: Path | None,
) -> None:
    """Prints the manifest of one run of a recipe. What can be derived is: hosts, chips, mesh, selectors, queue, bucket
    and image come from the environment. Each run has a name of its own. Nothing is submitted or asked of a cluster;
    with a login for Google, the registry is asked for the digest of the image.
    """
    if keys:
        print("\n".join(_keys(known_recipe(recipe))))
        return
    run = run_of(project.load_and_warn(), recipe, team=team, group=group, slices=slices, settings=settings, name=name)
    try:
        texts = rendered(run)
        if images := _images(run):
            texts = rendered(replace(run, images=images))
    except BadManifest as bad:
        raise WrongArgument(str(bad)) from None
    text = "---\n".join(text if text.endswith("\n") else f"{text}\n" for text in texts.values())
    if o is None:
        print(text, end="")
        return
    _write(o, text)
    print(
        f"Wrote {printable(str(o))}: run {run.name}. `kubectl create -f {printable(shlex.quote(str(o)))}` submits it."
    )


def _images(run: Run) -> dict[str, str]:
    """The images of the run by digest; none, and a note, where the registry cannot be asked or does not have them."""
    if not run.recipe.images and run.recipe.name not in recipes_with_an_image():
        return {}
    project_id = run.environment.settings.project_id
    if project_id == project.EXAMPLE or not login.is_on_this_machine():
        reason = "without a login for a Google Cloud project nobody knows its digest"
    else:
        # Not before it is needed: Google's libraries take a second to load.
        from tpuenv.google.clients import connect_without_quota_project
        from tpuenv.jobs.images import pinned_images

        try:
            return pinned_images(run.environment, connect_without_quota_project(project_id), run.recipe)
        except Failed as failed:
            reason = str(failed)
    print(
        f"note: the image is named by its tag, and the manifest can be used as it is once the image is built: {reason}",
        file=sys.stderr,
    )
    return {}


def _keys(recipe: Recipe) -> Iterator[str]:
    """The keys with the values that they have unless they are set, and what they do; and the presets."""
    yield f"{recipe.name}: {recipe.summary}"
    chosen = recipe.presets.get(recipe.preset or "", {})
    if chosen:
        yield f"The values are those of preset={recipe.preset}, which is the default."
    parameters = {**recipe.parameters, **recipe.arguments}
    rows = [(key, chosen.get(key, parameter.default or ""), _help(parameter)) for key, parameter in parameters.items()]
    for part, what in ((recipe.mesh.within_slice, "the devices of a slice"), (recipe.mesh.across_slices, "the slices")):
        for key in part.keys if part else ():
            rest = part is not None and key == part.rest
            rows.append(
                (
                    key,
                    chosen.get(key, "" if rest else "1"),
                    f"Mesh: {'what is left of ' if rest else 'a factor of '}{what}",
                )
            )
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    for key, default, help_ in rows:
        yield f"  {key:{widths[0]}}  {default:{widths[1]}}  {help_}"
    for name, values in recipe.presets.items():
        default = " (default)" if name == recipe.preset else ""
        yield f"  preset={name}{default}: {', '.join(f'{key}={value}' for key, value in values.items())}"
    if recipe.more_arguments:
        file = Path(os.path.normpath(Path(recipe.folder.parent.name, recipe.name, recipe.more_arguments_file)))
        sooner = f", and by `tpuenv fit {recipe.name}`" if can_be_compiled(recipe) else ""
        yield f"  and the {len(recipe.more_arguments)} other keys of the program, in {file}"
        yield f"  (their values are checked when the program starts{sooner})"


def _help(parameter: Parameter) -> str:
    choices = [f"one of {', '.join(parameter.choices)}"] if parameter.choices else []
    bounds = [
        f"{word} {bound}" for word, bound in (("from", parameter.least), ("to", parameter.most)) if bound is not None
    ]
    required = [f"required, such as {parameter.example}"] if parameter.required else []
    on_spot = [f"{parameter.on_spot} on spot"] if parameter.on_spot is not None else []
    notes = "; ".join([*choices, *filter(None, [" ".join(bounds)]), *on_spot, *required])
    return parameter.help + (f" ({notes})" if notes else "")


def _write(file: Path, text: str) -> None:
    """Writes all of the file or leaves it as it was. Raises Failed."""
    try:
        target = file.resolve()
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            target.write_text(text, encoding="utf-8")  # a device or a pipe
            return
        with new_file_for(target, text) as new:
            if target.exists():
                shutil.copymode(target, new)
            new.replace(target)
    except (OSError, RuntimeError) as error:
        raise Failed(f"-o: {printable(str(file))}: {getattr(error, 'strerror', None) or error}") from None
