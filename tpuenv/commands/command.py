"""The form that all subcommands have: their help with examples and notes, and how their words are parsed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import click

CDKTF_OPTIONS = "What follows a lone -- goes to cdktf as it is."


class Command(click.Command):
    """Refuses an option without its value, which click alone gives the next option for one; empty values, which a
    script leaves where it has not set a variable; and a second value, for which click forgets the first.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return rest
        for option in self.params:
            value = str(ctx.params.get(option.name))
            written = {f"{name}={value}" for name in option.opts}
            if isinstance(option, click.Option) and value.startswith("-") and not written & set(words):
                raise click.BadOptionUsage(option.name, f"Option '{option.opts[-1]}' requires an argument.", ctx)
            given = sum(word.partition("=")[0] in option.opts for word in words)
            if isinstance(option, click.Option) and given > 1 and not option.multiple and not option.is_flag:
                raise click.BadOptionUsage(
                    option.name, f"Option '{option.opts[-1]}' is given twice; give it once.", ctx
                )
        of_values = {name for each in self.params if not getattr(each, "is_flag", True) for name in each.opts}
        arguments = [each.human_readable_name.strip("[].") for each in self.params if isinstance(each, click.Argument)]
        for before, word in pairwise(["", *words]):
            name = word.removesuffix("=") or (before if before in of_values else "".join(arguments[:1]))
            if name != "--confirm" and (word == "" or re.fullmatch(r"--[a-z-]+=", word)):
                raise click.UsageError(f"'{name}' is empty; give it a value, or leave it out", ctx)
        return rest


class CdktfCommand(Command):
    """Hands everything after the first `--` to the function as `cdktf_options`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        ctx.params["cdktf_options"] = args[end + 1 :]
        return super().parse_args(ctx, args[:end])


def command(
    *,
    summary: str,
    examples: Sequence[str] = (),
    notes: str = "",
    name: str | None = None,
    help: str | None = None,
    cls: type[Command] = Command,
) -> Callable[[Callable[..., Any]], Command]:
    """Makes a function a subcommand. Its docstring, or `help`, is the description; what follows \\b keeps its lines.

    `summary` is its line in the list of commands. The help ends with `examples`, one a line, and `notes`.
    """
    shown = "\n".join(["\b", "examples:", *(f"  {example}" for example in examples)]) if examples else ""
    epilog = "\n\n".join(part for part in (shown, notes) if part)
    return click.command(name, cls=cls, short_help=summary, epilog=epilog, help=help)
