"""`tpuenv recover`: puts locks, states and what the states do not know of right, after a run that was killed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from environment import project
from tpuenv.commands.options import seconds
from tpuenv.failure import Failed
from tpuenv.google import login
from tpuenv.recovery.advice import prepared
from tpuenv.terminal.dialog import asked
from tpuenv.terraform.stacks import OUTPUT, Stack, selected_stacks, synthesize

# The timeout of a build that deploys: cloudbuild/deploy.yaml.
STALE_AFTER = "6h"

_DESCRIPTION = """\
After a deploy or destroy that was killed, or a lost state. In this order:

bucket   of a state bucket that is gone, says how Google gives it back; or makes it anew
locks    names each lock with its holder and releases it
states   of a state that is lost or damaged, puts back the last whole version; brings
         in what Terraform had to leave in a stack's folder (errored.tfstate)
objects  finds what exists in the cloud under our names and is in no state, imports
         it, and says for everything else what to do

It asks before each of them, and a --dry-run only looks (where a stack has no state yet,
Terraform itself writes an empty one by looking). It never changes or deletes anything but locks and
states, and a state that it replaces stays in the bucket as an old version. Run it
again after each deploy that it asks for: a stack cannot be looked at before the
cluster that it is in.
"""

_EPILOG = """\
examples:
  tpuenv recover --dry-run     look, and change nothing
  tpuenv recover
  tpuenv recover --yes         no questions, but see below
  tpuenv recover --yes --stale-after 0m

With --yes what is doubtful is left alone, and the exit code is 1: a lock whose holder is seen at
work on this machine, or is a build that Cloud Build says is running; a lock of another machine,
younger than --stale-after, whose holder cannot be seen; a state bucket that is gone, unless
--new-bucket says to make another.

Exit codes: 0 all is put right, or nothing was wrong; 1 something is left to do by hand (with
--dry-run: something would be done); 2 wrong settings or arguments; 130 interrupted.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "recover",
        help="after a crash: release locks, restore states, import what no state knows of",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stacks", nargs="*", metavar="STACK", help="only these; all of them if none is named")
    parser.add_argument("--dry-run", action="store_true", help="show what is wrong, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask; what is doubtful is left alone")
    parser.add_argument(
        "--stale-after",
        type=seconds,
        default=STALE_AFTER,
        metavar="TIME",
        help="with --yes, keep a younger lock of another machine whose holder cannot be seen: 90s, 10m, 1h; "
        f"0m keeps none (default: {STALE_AFTER}, which no build outlives)",
    )
    parser.add_argument(
        "--new-bucket",
        action="store_true",
        help="with --yes, make a state bucket that is gone anew; Google does not give the old one back then",
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to synthesize (default: cdktf.out)")


def run(args: argparse.Namespace) -> int:
    wanted = project.real()
    ask = _answers(args)
    login.require(wanted.settings.project_id)
    stacks = _chosen(synthesize(args.output.absolute()), args.stacks)
    recovery = prepared(wanted, stacks, ask=ask, careful=args.yes, dry_run=args.dry_run)
    return replace(recovery, stale_after=args.stale_after, new_bucket=args.new_bucket).run()


def _chosen(stacks: Sequence[Stack], names: Sequence[str]) -> list[Stack]:
    """Of all stacks, the pipeline too: a person deploys it, and that may be killed as well."""
    if names:
        return selected_stacks(stacks, names)
    return list(stacks)


def _answers(args: argparse.Namespace) -> Callable[[str], bool]:
    """Who answers the questions. Raises Failed when there is nobody to be asked."""
    if args.dry_run:
        return _would_ask
    if args.yes:
        return lambda _question: True
    if not (sys.stdin and sys.stdin.isatty()):
        raise Failed("recover: there is no terminal to ask at; add --yes, or --dry-run to look and change nothing")
    return asked


def _would_ask(question: str) -> bool:
    print(f"    would ask: {question}")
    return False
