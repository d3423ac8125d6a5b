"""Whether nodes and pods fit in the ranges, and whether the ranges are ones that GKE takes."""

from __future__ import annotations

MAX_PODS_TPU = 16  # a /27 a node
MAX_PODS_CPU = 110  # a /24 a node, GKE's default
