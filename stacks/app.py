"""The stacks in their order: a line and not a tree.

When one of two stacks that cdktf 0.21 deploys side by side fails, it kills the other's Terraform in the middle of a
create.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from cdktf import App

from environment import Environment
from environment.names import OBSERVABILITY, PIPELINE, TPU_VMS
from stacks.base import EnvironmentStack
from stacks.cluster import Cluster
from stacks.foundation import Foundation
from stacks.observability import Observability
from stacks.pipeline import Pipeline
from stacks.platform import Platform
from stacks.queues import Queues
from stacks.tpu_node_pools import TpuNodePools

# By name, in the order of their deployment: quota never comes before its chips, and on the way down jobs are drained
# before their nodes go.
STACKS: dict[str, type[EnvironmentStack]] = {
    "foundation": Foundation,
    "cluster": Cluster,
    "platform": Platform,
    "tpu-node-pools": TpuNodePools,
    "queues": Queues,
    OBSERVABILITY: Observability,
}

NODE_POOLS = "tpu-node-pools"  # the stack that an Autopilot cluster has no use for

JSON, HCL = "cdk.tf.json", "cdk.tf"


def write_stacks(environment: Environment, folder: Path) -> None:
    """All stacks of an environment in `folder`, as JSON, or as HCL when the CDKTF CLI was called with `--hcl`.

    Terraform reads every file of a stack's folder, so what an earlier run left there in the other form is removed.
    """
    result = app(environment, folder)
    result.synth()
    for stale in folder.glob(f"stacks/*/{JSON if result.hcl_output else HCL}"):
        stale.unlink()


def stacks_of(environment: Environment) -> dict[str, type[EnvironmentStack]]:
    """Those of STACKS that the environment has."""
    settings = environment.settings
    without = {*([NODE_POOLS] if settings.autopilot else []), *([] if settings.observability else [OBSERVABILITY])}
    return {name: stack for name, stack in STACKS.items() if name not in without}


def app(environment: Environment, folder: Path) -> App:
    """All stacks of an environment, each depending on the one before."""
    result = App(outdir=str(folder))
    line = [stack(result, name, environment=environment) for name, stack in stacks_of(environment).items()]
    if environment.settings.build_repository:
        # What its identities may do follows from the others, so it is created last; a person deploys it early.
        line.insert(1, Pipeline(result, PIPELINE, environment=environment, stacks=[*line]))
    if environment.tpu_vms:
        # Imported only where it is needed, and after the pipeline's stacks: a person deploys it.
        from stacks.tpu_vms import TpuVms

        line.append(TpuVms(result, TPU_VMS, environment=environment))
    for before, stack in itertools.pairwise(line):
        stack.add_dependency(before)
    return result
