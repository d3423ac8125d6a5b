"""Arguments and options that several subcommands have, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tpuenv.rehearsals.world import FOLDER
from tpuenv.terraform.stacks import OUTPUT, synthesized_stacks
from vocabulary.printable import quoted

F = TypeVar("F", bound=Callable[..., Any])


_LONGEST_HOURS = 720  # 30 days


def duration(text: str) -> str:
    """A time as Terraform reads it: 90s, 10m or 1h. Raises click.BadParameter."""
    seconds(text)
    return text


def seconds(text: str) -> float:
    """The seconds of a time: 90s, 10m or 1h. Raises click.BadParameter."""
    if not re.fullmatch(r"[0-9]+[smh]", text):
        raise click.BadParameter(f"{quoted(text)} is not a time; write 90s, 10m or 1h")
    value = float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]
    if value > _LONGEST_HOURS * 3600:
        raise click.BadParameter(f"{quoted(text)} is too long; write {_LONGEST_HOURS}h or less")
    return value


def timeout(text: str) -> str:
    """As `duration`, but not 0s. Raises click.BadParameter."""
    if not seconds(text):
        raise click.BadParameter(f"{quoted(text)} leaves no time; write 90s, 10m or 1h")
    return text


def _stack_names(_context: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
    """For completion: the stacks of the last synthesis."""
    return [stack.name for stack in synthesized_stacks() if stack.name.startswith(begun)]


def stack(*, required: bool = True, help: str = "") -> Callable[[F], F]:
    """The name of one stack."""
    metavar = "STACK" if required else "[STACK]"
    return click.argument("stack", required=required, metavar=metavar, help=help, shell_complete=_stack_names)


def stacks(default: str) -> Callable[[F], F]:
    """The names of any number of stacks; `default` says which it is without a name."""
    text = f"only these; {default} if none is named"
    return click.argument("stacks", nargs=-1, metavar="[STACK]...", help=text, shell_complete=_stack_names)


def output(when: str = "") -> Callable[[F], F]:
    """The folder of the synthesized stacks."""
    text = f"where to synthesize{when} (default: cdktf.out)"
    return value("--output", "OUTPUT", text, type=click.Path(path_type=Path), default=OUTPUT)


def flag(name: str, text: str) -> Callable[[F], F]:
    """An option without a value."""
    return click.option(name, is_flag=True, help=text)


def value(name: str, metavar: str, text: str, **settings: Any) -> Callable[[F], F]:
    """An option with a value; `settings` are click's own."""
    return click.option(name, metavar=metavar, help=text, **settings)


def _recipe_names(_context: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
    """For completion: the recipes in manifests/."""
    from manifests.recipes import BadManifest, all_recipes

    try:
        return [recipe.name for recipe in all_recipes() if recipe.name.startswith(begun)]
    except BadManifest:
        return []


def team(function: F) -> F:
    """--team; None where it is not given."""
    return value("--team", "TEAM", "whose it is (default: the only team)")(function)


def workload(function: F) -> F:
    """A run of a recipe, without its name: RECIPE, --team, --group, --slices, and --set as `settings`."""
    recipe = click.argument(
        "recipe", metavar="RECIPE", help="a folder of manifests/, such as hello-tpu", shell_complete=_recipe_names
    )
    group = value("--group", "GROUP", "the pool group to run on (default: the only one that the team may use)")
    slices = value("--slices", "N", "on how many of its slices (default: 1)", type=click.IntRange(min=1), default=1)
    settings = click.option(
        *("--set", "settings"),
        metavar="KEY=VALUE",
        multiple=True,
        help="a value of the recipe, as often as needed; `tpuenv render RECIPE --keys` lists them",
    )
    return recipe(team(group(slices(settings(function)))))


def run(function: F) -> F:
    """A run of a recipe: as `workload`, and --name."""
    return workload(
        value("--name", "NAME", "what the run is called (default: the recipe's name with a random end)")(function)
    )


def prices(function: F) -> F:
    """--prices; None where it is not given."""
    text = "a file of your own prices, which count before the list prices"
    return value("--prices", "FILE", text, type=click.Path(path_type=Path))(function)


def locks(function: F) -> F:
    """--wait in seconds and --lock-timeout as Terraform reads it."""
    wait_help = "how long to wait for another apply or destroy of this environment (default: 60m)"
    wait = value("--wait", "TIME", wait_help, type=seconds, default="60m")
    timeout_help = "how long Terraform waits for the lock of a stack's state (default: 10m)"
    lock_timeout = value("--lock-timeout", "TIME", timeout_help, type=duration, default="10m")
    return wait(lock_timeout(function))


def rehearsal(function: F) -> F:
    """Where a rehearsal works, and in which Google Cloud."""
    exists = flag(
        "--yes-it-exists",
        "go on with a region, zone or GKE version that is not on Google's lists of September 2026",
    )
    folder_help = "where to work: new, empty or a rehearsal's (default: .venv/rehearsal)"
    folder = value("--folder", "FOLDER", folder_help, type=click.Path(path_type=Path), default=FOLDER)
    return exists(folder(function))


auto_approve = flag("--auto-approve", "do not ask before each stack")
