"""`tpuenv destroy`: `cdktf destroy '*'`, with its errors explained."""

from __future__ import annotations

import argparse

_DESCRIPTION = """\
Runs `cdktf destroy` on all stacks, or on those that are named, and nothing else: the
plan, the question and the output are cdktf's own. Everything is protected until
DELETION_PROTECTION=false, and the data in foundation until DESTROY_DATA=true as
well; Terraform refuses before it touches a protected stack.
"""

_EPILOG = """\
examples:
  DELETION_PROTECTION=false tpuenv destroy queues tpu-node-pools platform cluster
  DELETION_PROTECTION=false DESTROY_DATA=true tpuenv destroy

What follows a lone -- goes to cdktf as it is.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "destroy",
        help="cdktf destroy '*', and an explanation if it fails",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stacks", nargs="*", metavar="STACK", help="only these; all of them if none is named")
    parser.add_argument("--auto-approve", action="store_true", help="do not ask before each stack")


def run(args: argparse.Namespace) -> int:
    from cli.cdktf import run_cdktf

    return run_cdktf("destroy", args.stacks, auto_approve=args.auto_approve)
