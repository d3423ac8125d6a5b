"""What spot asks of pods: to end within seconds of the notice.

https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms
"""

from __future__ import annotations

from collections.abc import Iterator

from admission.cluster import Cluster, Flavor
from admission.workload import PodSet
from vocabulary.keys import SPOT_LABEL

_SECONDS = 15


def spot_notes(cluster: Cluster, pods: PodSet, flavor: Flavor) -> Iterator[str]:
    """For pods that count on more time than spot gives them."""
    nodes = cluster.nodes_of(flavor)
    labels = [flavor.labels, *(node.labels for node in nodes)]
    seconds = pods.spec.get("terminationGracePeriodSeconds").number(0)
    if seconds > _SECONDS and any(of.get(SPOT_LABEL) == "true" for of in labels):
        yield (
            f"{pods.name}: on spot, pods get {_SECONDS} s after the notice, whatever terminationGracePeriodSeconds "
            f"says ({seconds}), and up to 120 s from GKE 1.35.0-gke.1171000; write checkpoints so often that none is "
            "needed then"
        )
