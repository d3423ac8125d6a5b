"""How much of a node pods may ask for: GKE's reservations, and an allowance for the system's own pods.

Facts: GKE, "Plan GKE Standard node sizes" (memory and CPU reservations, eviction threshold) and "Use Image streaming"
(memory reservation), read November 2026.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

# (up to this many cores or GiB, the share of that stretch that GKE keeps); the last stretch has no end.
_CPU_RESERVED = ((1, "0.06"), (2, "0.01"), (4, "0.005"), (None, "0.0025"))
_MEMORY_RESERVED = ((4, "0.25"), (8, "0.20"), (16, "0.10"), (128, "0.06"), (None, "0.02"))
# Image streaming keeps 10, 8, 4, 2.4 and 0.8 percent of the same stretches.
_STREAMING_RESERVED = Fraction("0.4")
_EVICTION_GIB = Fraction(100, 1024)
# Linux itself takes about 3 percent before GKE counts: Google's own example, a node of 4 vCPU and 16 GB, has
# 13498416Ki left for pods, which this figure gives to within 0.1 percent.
_KERNEL = Fraction("0.03")

# An allowance of ours, not a figure of Google: the DaemonSets of a node (network, logging, metrics, metadata server,
# storage drivers), and the pods that a cluster has once (DNS, metrics, KubeRay), in the CPU pool.
_NODE_AGENTS_CPU, _NODE_AGENTS_GIB = Fraction("0.5"), Fraction(1)
CLUSTER_PODS_CPU, CLUSTER_PODS_GIB = 2, 4

BOOT_DISK_GB = 100  # of every node


@dataclass(frozen=True, kw_only=True)
class NodeCapacity:
    """What one node gives to the jobs' pods, in whole cores and whole GiB, rounded down."""

    cpu: int
    memory_gib: int


@cache
def node_capacity(*, vcpu: int, memory_gb: int) -> NodeCapacity:
    """The share of a node that jobs can have. Google's GB of a machine type are GiB."""
    cpu = vcpu - _reserved(Fraction(vcpu), _CPU_RESERVED) - _NODE_AGENTS_CPU
    return NodeCapacity(
        cpu=max(0, int(cpu)), memory_gib=max(0, int(allocatable_gib(memory_gb, streaming=True) - _NODE_AGENTS_GIB))
    )


def allocatable_gib(memory_gb: int, *, streaming: bool) -> Fraction:
    """The memory that GKE leaves to all pods of a node, its own included, in GiB."""
    memory = memory_gb * (1 - _KERNEL)
    reserved = _reserved(memory, _MEMORY_RESERVED)
    return memory - reserved * (1 + (_STREAMING_RESERVED if streaming else 0)) - _EVICTION_GIB


def _reserved(amount: Fraction, stretches: tuple[tuple[int | None, str], ...]) -> Fraction:
    kept, start = Fraction(0), Fraction(0)
    for end, share in stretches:
        stop = amount if end is None else min(amount, Fraction(end))
        kept += max(Fraction(0), stop - start) * Fraction(share)
        start = max(start, stop)
    return kept
