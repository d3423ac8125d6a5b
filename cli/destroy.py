"""`tpuenv destroy`: `cdktf destroy '*'`, with its errors explained."""

from __future__ import annotations

import argparse

from cli import cdktf

_DESCRIPTION = """\
Runs `cdktf destroy` on all stacks, or on those that are named, and nothing else: the
plan, the question and the output are cdktf's own. Everything is protected until
DELETION_PROTECTION=false, and the data in foundation until DESTROY_DATA=true as
well; Terraform refuses before it touches a protected stack.
"""

_EXAMPLES = """\
  DELETION_PROTECTION=false tpuenv destroy queues tpu-node-pools platform cluster
  DELETION_PROTECTION=false DESTROY_DATA=true tpuenv destroy
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    cdktf.add_parser(subparsers, "destroy", description=_DESCRIPTION, examples=_EXAMPLES)


run = cdktf.run
