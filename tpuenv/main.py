"""The `tpuenv` command: one module a subcommand, each with `add_parser` and `run`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from environment import Refused
from tpuenv import versions
from tpuenv.commands import (
    apply,
    bootstrap,
    check,
    deploy,
    destroy,
    fleet,
    plan,
    recover,
    rehearse,
    rehearse_pipeline,
    state,
)
from tpuenv.failure import Failed, WrongArgument

_COMMANDS = {
    "rehearse": rehearse,
    "rehearse-pipeline": rehearse_pipeline,
    "check": check,
    "fleet": fleet,
    "bootstrap": bootstrap,
    "plan": plan,
    "apply": apply,
    "deploy": deploy,
    "destroy": destroy,
    "recover": recover,
    "state": state,
}

_EPILOG = """\
examples:
  tpuenv rehearse                   play the whole deployment on this machine; no cloud account is needed
  TPU_TYPE=v6e-32 tpuenv rehearse   the same with another TPU type
  tpuenv bootstrap                  once per project: enable the Google APIs, make the state bucket
  tpuenv deploy                     deploy every stack
  tpuenv fleet --write              go on from vars.env to several kinds of slice or teams

Settings come from vars.env and, if there is one, fleet.yaml, in this checkout or in the
folder that TPUENV_FOLDER names. A variable of the process environment wins over the same
one in vars.env, unless it is empty: then it counts as not set.
Stacks, in their order: foundation, pipeline (with BUILD_REPOSITORY), cluster, platform,
tpu-node-pools, queues.
Exit codes: 0 done, 1 could not be done, 2 wrong settings or arguments, 130 interrupted.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand and returns its exit code. What a person did wrong is told in lines, never as a traceback."""
    parser = _Parser(
        prog="tpuenv",
        description="A TPU training environment on GKE: rehearse it, prepare the project, deploy it, destroy it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version, and those of what it works with")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for command in _COMMANDS.values():
        command.add_parser(subparsers)
    words, further = _split(sys.argv[1:] if argv is None else argv)
    args = parser.parse_args(words, argparse.Namespace(further=further))
    if args.version:
        print("\n".join(versions.lines()))
        return 0
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        code: int = _COMMANDS[args.command].run(args)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Who read the output has gone, as `| head` does: nobody is left to tell. Python's own last flush must not try.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    except Failed as failed:
        print(failed, file=sys.stderr)
        return 2 if isinstance(failed, WrongArgument) else 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code


class _Parser(argparse.ArgumentParser):
    """Refuses what it does not know itself: argparse leaves that to the outermost parser, which shows its own usage."""

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        known, unknown = super().parse_known_args(*args, **kwargs)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is ours, and what is for cdktf: all that follows the first `--` of a command that runs it."""
    if "--" not in words or words[0] not in ("deploy", "destroy"):
        return list(words), []
    end = list(words).index("--")
    return list(words[:end]), list(words[end + 1 :])
