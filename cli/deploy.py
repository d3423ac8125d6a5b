"""`tpuenv deploy`: `cdktf deploy '*'`, with its errors explained."""

from __future__ import annotations

import argparse

_DESCRIPTION = """\
Runs `cdktf deploy` on all stacks, or on those that are named, and nothing else: the
plan, the question and the output are cdktf's own. When Terraform stops with an
error that has a known cause - a missing API or bucket, a held lock, no login, a
protected resource - it says in the end what to do.
"""

_EPILOG = """\
examples:
  tpuenv deploy
  tpuenv deploy foundation cluster --auto-approve
  tpuenv deploy queues -- --ignore-missing-stack-dependencies

What follows a lone -- goes to cdktf as it is.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "deploy",
        help="cdktf deploy '*', and an explanation if it fails",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stacks", nargs="*", metavar="STACK", help="only these; all of them if none is named")
    parser.add_argument("--auto-approve", action="store_true", help="do not ask before each stack")


def run(args: argparse.Namespace) -> int:
    from cli.cdktf import run_cdktf

    return run_cdktf("deploy", args.stacks, auto_approve=args.auto_approve)
