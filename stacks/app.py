"""The stacks in their order: a line and not a tree.

When one of two stacks that cdktf 0.21 deploys side by side fails, it kills the other's Terraform in the middle of a
create.
"""

from __future__ import annotations

from pathlib import Path

from cdktf import App

from environment import Environment
from stacks.cluster import Cluster
from stacks.foundation import Foundation
from stacks.platform import Platform
from stacks.queues import Queues
from stacks.tpu_node_pools import TpuNodePools


def app(environment: Environment, folder: Path) -> App:
    """All stacks of an environment, each depending on the one before; `synth()` writes them to `folder`.

    Quota never comes before its chips, and on the way down jobs are drained before their nodes go.
    """
    result = App(outdir=str(folder))
    foundation = Foundation(result, "foundation", environment=environment)
    cluster = Cluster(result, "cluster", environment=environment)
    platform = Platform(result, "platform", environment=environment)
    tpu_node_pools = TpuNodePools(result, "tpu-node-pools", environment=environment)
    queues = Queues(result, "queues", environment=environment)
    for before, stack in (
        (foundation, cluster),
        (cluster, platform),
        (platform, tpu_node_pools),
        (tpu_node_pools, queues),
    ):
        stack.add_dependency(before)
    return result
