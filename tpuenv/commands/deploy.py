"""`tpuenv deploy`: `cdktf deploy '*'`, with its errors explained."""

from __future__ import annotations

import argparse

from tpuenv.commands import cdktf

_DESCRIPTION = """\
Runs `cdktf deploy` on all stacks, or on those that are named, and nothing else: the
plan, the question and the output are cdktf's own. When Terraform stops with an
error that has a known cause - a missing API or bucket, a held lock, no login, a
protected resource - it says in the end what to do.
"""

_EXAMPLES = """\
  tpuenv deploy
  tpuenv deploy foundation cluster --auto-approve
  tpuenv deploy queues -- --ignore-missing-stack-dependencies
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    cdktf.add_parser(subparsers, "deploy", description=_DESCRIPTION, examples=_EXAMPLES)


run = cdktf.run
