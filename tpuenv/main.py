"""The `tpuenv` command: one module a subcommand in tpuenv/commands, loaded when it is needed."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import shell_complete

from environment import Refused
from tpuenv.commands.completion import VARIABLE
from tpuenv.failure import INTERRUPTED, Failed
from vocabulary.resource_types import DamagedFacts

# In the order of the help. Each is a function in the module of its name.
_COMMANDS = (
    "rehearse",
    "rehearse-pipeline",
    "images",
    "check",
    "render",
    "fit",
    "submit",
    "status",
    "jobs",
    "why",
    "logs",
    "cancel",
    "requeue",
    "fleet",
    "cost",
    "preflight",
    "verify",
    "bootstrap",
    "plan",
    "apply",
    "deploy",
    "destroy",
    "recover",
    "state",
    "token",
    "completion",
)

_EPILOG = """\b
examples:
  tpuenv rehearse                   the whole deployment on this machine
  TPU_TYPE=v6e-32 tpuenv rehearse   the same with another TPU type
  tpuenv bootstrap                  once per project: APIs and state bucket
  tpuenv deploy                     deploy every stack
  tpuenv fleet --write              for several kinds of slice, or teams

Settings come from vars.env and, if there is one, fleet.yaml, in this checkout or in the folder that TPUENV_FOLDER
names. A variable of the process environment takes precedence over the same one in vars.env, unless it is empty: then it
counts as not set.

README.md lists the stacks in the order in which they are deployed.

Exit codes: 0 done, 1 could not be done, 2 wrong settings or arguments, 130 interrupted.
"""


class _Commands(click.Group):
    """Loads a subcommand when it is asked for: `tpuenv fleet` does not wait for the rules of admission."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            if ctx.resilient_parsing:  # a shell that completes
                return None
            raise click.NoSuchCommand(cmd_name, possibilities=_COMMANDS, ctx=ctx)
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"tpuenv.commands.{name}"), name)
        return command


def _print_versions(context: click.Context, _option: click.Parameter, given: bool) -> None:
    if given and not context.resilient_parsing:
        from tpuenv import tool_versions

        print("\n".join(tool_versions.lines()))
        context.exit()


@click.group(cls=_Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_versions,
    help="print the version, and those of what it works with",
)
def tpuenv() -> None:
    """A TPU training environment on GKE: rehearse it, prepare the project, deploy it, destroy it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand; its exit code. What a person did wrong is printed in lines, not as a traceback."""
    if instruction := os.environ.get(VARIABLE):
        return shell_complete(tpuenv, {}, "tpuenv", VARIABLE, instruction)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # What a terminal or file of another encoding cannot hold: in the quoted texts of a manifest it means the same.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC) or error.filename is not None:
            raise
        if error.errno == errno.ENOSPC:
            print(f"standard output: {error.strerror}", file=sys.stderr)
        # Python flushes standard output once more when it ends, and must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _run(arguments: list[str]) -> int:
    try:
        with tpuenv.make_context("tpuenv", arguments) as context:
            return tpuenv.invoke(context) or 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        error.show()
        return error.exit_code
    except (Refused, DamagedFacts) as refused:
        print(refused, file=sys.stderr)
        return 2
    except Failed as failed:
        print(failed, file=sys.stderr)
        return failed.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
